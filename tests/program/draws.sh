# Numbers and configurations that SEED decides, for scripts that read common.sh. The program's runs
# are as random as these; the moments of kills are not.

# draw N: sets $drawn to a random number from 0 to N - 1.
drawn=0
state=$(((seed * 1103515245 + 40503) % 2147483648))
draw() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$(((state / 65536) % $1))
}

# one_of WORDS...: sets $one to one of them.
one_of() {
    draw $#
    shift "$drawn"
    one=$1
}

# places: sets $places to options that say where optimizer states lie.
places() {
    draw 3
    places=
    [ -n "$disk" ] || return 0
    case $drawn in
    0) places="--offload $disk" ;;
    1) places="--offload $disk --offload-when end" ;;
    esac
}

# draws_kind: sets $kind to options that all runs of a checkpoint have in common.
draws_kind() {
    one_of fp32 bf16 fp16
    kind="--dtype $one"
    one_of byte char bpe:300
    kind="$kind --tokenizer $one"
    one_of 8 16 40
    kind="$kind --hidden $one"
}

# draws_layout: sets $ranks, 1 to 4, and $layout to options that may change when a run is resumed.
draws_layout() {
    one_of 1 2 3 4
    ranks=$one
    one_of 0 1 2 3
    layout="--stage $one"
    one_of slice owner
    layout="$layout --partition $one"
    one_of auto p2p
    layout="$layout --collectives $one"
    draw 4
    [ $drawn -gt 0 ] || [ $((ranks % 2)) -gt 0 ] || layout="--stage 3 --tp 2"
    places
    layout="$layout $places"
}
