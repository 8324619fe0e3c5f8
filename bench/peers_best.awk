# peers_best.awk - the table that counts: in each race the fastest of all other programs' modes, the
# rival, beside each way in which ours uses the cores.

function memory(mine, rival) {
    return bytes[mine] && bytes[rival] ? sprintf("%.2f", bytes[mine] / bytes[rival]) : "-"
}

function show(race, mine, rival, first,    mark) {
    mark = mine == fastest(race, "ours") ? "*" : ""
    printf format, race, first ? program(rival) : "", first ? sprintf("%.4g", middle(rival)) : "",
        first ? mebibytes(rival) : "", program(mine) mark, sprintf("%.4g", middle(mine)),
        ratio(rival, mine), memory(mine, rival), ratio(mine, reference)
}

END {
    format = "%-17s %-27s %7s %6s  %-24s %7s  %-17s %6s  %s\n"
    printf format, "case, dtype", "strongest rival", "s/step", "MiB", "ours (* fastest)", "s/step",
        "rival/ours", "memory", "ours/first of ours"
    for (i = 1; i <= n_rows; i++) {
        split(rows[i], is, " ")
        race = is[1] " " is[2]
        if (race in shown) continue
        shown[race] = 1
        rival = fastest(race, "torch-")
        if (rival == "" || fastest(race, "ours") == "") continue
        reference = ""
        for (k = 1; k <= n_rows; k++) {
            if (index(rows[k], race " ours") != 1) continue
            first = reference == ""
            if (first) reference = rows[k]
            show(race, rows[k], rival, first)
        }
    }
}
