# peers_case.awk - all programs of one case: -v wanted=CASE -v tokens=TOKENS (of a step)
# A program's ratio is its time over that of the fastest of ours, in the same round.

END {
    format = "%-5s %-30s %6s %8s %8s %9s %9s  %s\n"
    printf format, "dtype", "program", "rounds", "s/step", "least", "tokens/s", "MiB/rank",
        "x fastest of ours"
    for (i = 1; i <= n_rows; i++) {
        split(rows[i], is, " ")
        if (is[1] != wanted) continue
        s = middle(rows[i])
        printf format, is[2], is[3], n_rounds[rows[i]], sprintf("%.4g", s),
            sprintf("%.4g", least[rows[i]]), sprintf("%.0f", tokens / s), mebibytes(rows[i]),
            ratio(rows[i], fastest(is[1] " " is[2], "ours"))
    }
}
