# peers_runs.awk - what bench/peers.sh measured, from lines of
#
#     case dtype round program seconds least bytes
#
# for the tables peers_case.awk and peers_best.awk. A row is "case dtype program", a race "case dtype".

function middle(row,    x, n, r) { # of a row's seconds over its rounds
    for (r = 0; r < rounds; r++)
        if ((row, r) in seconds) x[++n] = seconds[row, r]
    return median(x, n)
}

# The time of a row over that of another, in the same round: middle, least and most.
function ratios(row, base, out,    x, n, r) {
    for (r = 0; r < rounds; r++)
        if ((row, r) in seconds && (base, r) in seconds) x[++n] = seconds[row, r] / seconds[base, r]
    if (n) {
        out["middle"] = median(x, n)
        out["least"] = x[1]
        out["most"] = x[n]
    }
    return n
}

function ratio(row, base,    x) {
    if (!ratios(row, base, x)) return "-"
    return sprintf("%.2f (%.2f-%.2f)", x["middle"], x["least"], x["most"])
}

# The row of a race whose program begins with `maker` and whose middle is least, among those that
# have every round; "" without one.
function fastest(race, maker,    i, best) {
    for (i = 1; i <= n_rows; i++)
        if (index(rows[i], race " " maker) == 1 && n_rounds[rows[i]] == rounds &&
            (best == "" || middle(rows[i]) < middle(best))) best = rows[i]
    return best
}

function program(row,    is) {
    split(row, is, " ")
    return is[3]
}

function mebibytes(row) {
    return bytes[row] ? sprintf("%.0f", bytes[row] / 1048576) : "-"
}

{
    row = $1 " " $2 " " $4
    if (!(row in bytes)) {
        rows[++n_rows] = row
        bytes[row] = 0
        least[row] = $6
    }
    seconds[row, $3] = $5
    n_rounds[row]++
    if ($6 < least[row]) least[row] = $6
    if ($7 > bytes[row]) bytes[row] = $7
    if ($3 >= rounds) rounds = $3 + 1
}
