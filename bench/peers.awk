# peers.awk - the table of one case of bench/peers.sh, from lines of
#
#     case dtype round program seconds least bytes
#
# A program's ratios are its time over ours in the same round.

function sort(x, n,    i, j, t) {
    for (i = 2; i <= n; i++) {
        t = x[i]
        for (j = i - 1; j >= 1 && x[j] > t; j--) x[j + 1] = x[j]
        x[j + 1] = t
    }
}

function median(x, n) {
    sort(x, n)
    return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
}

function middle(row,    x, n, r) {
    for (r = 0; r < rounds; r++)
        if ((row, r) in seconds) x[++n] = seconds[row, r]
    return median(x, n)
}

function ratio(row, base,    x, n, r) {
    for (r = 0; r < rounds; r++)
        if ((row, r) in seconds && (base, r) in seconds) x[++n] = seconds[row, r] / seconds[base, r]
    if (!n) return "-"
    return sprintf("%.2f (%.2f-%.2f)", median(x, n), x[1], x[n])
}

$1 == wanted {
    row = $2 " " $4
    if (!(row in bytes)) {
        rows[++n_rows] = row
        bytes[row] = 0
        least[row] = $6
    }
    seconds[row, $3] = $5
    if ($6 < least[row]) least[row] = $6
    if ($7 > bytes[row]) bytes[row] = $7
    if ($3 >= rounds) rounds = $3 + 1
}

END {
    format = "%-5s %-28s %7s %7s %9s %9s  %-17s %-17s\n"
    printf format, "dtype", "program", "s/step", "least", "tokens/s", "MiB/rank", "x stage 0",
        "x stage 1"
    for (i = 1; i <= n_rows; i++) {
        split(rows[i], is, " ")
        s = middle(rows[i])
        ours = is[1] " ours,stage-"
        printf format, is[1], is[2], sprintf("%.3f", s), sprintf("%.3f", least[rows[i]]),
            sprintf("%.0f", tokens / s),
            bytes[rows[i]] ? sprintf("%.0f", bytes[rows[i]] / 1048576) : "-",
            ratio(rows[i], ours "0"), ratio(rows[i], ours "1")
    }
}
