// Groups of ranks in C++17: the ranks of each half reduce-scatter and gather a vector, while all
// ranks count with a sum of integers. Handles end with their scope.
#include <zero/collective.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace
{

void check(zero_status status)
{
    if (status == ZERO_OK) return;
    std::cerr << zero_last_error() << std::endl;
    zero_world_abort(zero_exit_code(status));
}

struct close_work {
    void operator()(zero_work *work) const
    {
        zero_work_close(&work);
    } // waits
};
using work = std::unique_ptr<zero_work, close_work>;

struct close_comm {
    void operator()(zero_comm *comm) const
    {
        zero_comm_close(&comm);
    }
};
using group = std::unique_ptr<zero_comm, close_comm>;

void wait(work w)
{
    bool done = false;
    check(zero_work_wait(w.get(), 0.0, &done));
}

group half_of(zero_comm *world)
{
    const int rank = zero_comm_rank(world), size = zero_comm_size(world);
    const int first = rank < size / 2 ? 0 : size / 2,
              end = rank < size / 2 ? size / 2 : size;
    std::vector<int> ranks;
    for (int r = first; r < end; r++) ranks.push_back(r);
    zero_comm *comm = nullptr;
    const std::string name = first == 0 ? "first half" : "second half";
    check(zero_comm_open_ranks(world, static_cast<int>(ranks.size()), ranks.data(),
                               name.c_str(), &comm));
    return group(comm);
}

bool run(zero_comm *world)
{
    group half = half_of(world);
    const auto n = static_cast<std::size_t>(zero_comm_size(half.get()));
    const std::size_t piece = 1000;
    std::vector<double> data(n * piece, 1.5), all(n * piece);
    std::int64_t ranks = 1;
    zero_work *began = nullptr;
    double *own =
        data.data() + piece * static_cast<std::size_t>(zero_comm_rank(half.get()));

    check(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_INT64, 1, &ranks, &began));
    work counting(began);
    check(zero_reduce_scatter_begin(half.get(), ZERO_SUM, ZERO_NUMBER_FP64,
                                    static_cast<std::int64_t>(piece), data.data(), own,
                                    &began));
    wait(work(began));
    check(
        zero_all_gather_begin(half.get(), piece * sizeof(double), own, all.data(), &began));
    wait(work(began));
    wait(std::move(counting));

    bool right = ranks == zero_comm_size(world);
    for (double x : all) right = right && x == 1.5 * static_cast<double>(n);
    return right;
}

} // namespace

int main()
{
    zero_comm *world = nullptr;
    check(zero_world_open(30.0, &world));
    const bool right = run(world);
    if (zero_comm_rank(world) == 0)
        std::cout << "groups of " << zero_comm_size(world)
                  << " ranks: " << (right ? "right" : "WRONG") << std::endl;
    check(zero_world_close(&world));
    return right ? 0 : 1;
}
