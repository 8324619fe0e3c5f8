# median.awk - sorting and medians, for the other awk programs here: awk -f median.awk -f OTHER.awk

function sort(x, n,    i, j, t) {
    for (i = 2; i <= n; i++) {
        t = x[i]
        for (j = i - 1; j >= 1 && x[j] > t; j--) x[j + 1] = x[j]
        x[j + 1] = t
    }
}

function median(x, n) { # sorts x
    sort(x, n)
    return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
}
