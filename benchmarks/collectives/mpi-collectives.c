/* What MPI takes for a collective: seconds of each of CALLS times TIMES calls, as one
 * line of JSON. The peer of an executable of acc-make-collective.
 *
 *   mpi-collectives KIND BYTES TIMES CALLS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5)
    MPI_Abort(MPI_COMM_WORLD, 1);
  int scatters = strcmp(argv[1], "reduce_scatter") == 0;
  long bytes = atol(argv[2]), times = atol(argv[3]), calls = atol(argv[4]);
  int rank, ranks, count = (int)(bytes / 4);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float *in = malloc(bytes), *out = malloc(bytes);
  int *counts = malloc(ranks * sizeof *counts);
  for (int i = 0; i < count; ++i)
    in[i] = out[i] = 1;
  for (int i = 0; i < ranks; ++i)
    counts[i] = count / ranks;
  if (rank == 0)
    printf("[");
  for (long call = 0; call < calls; ++call) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (long i = 0; i < times; ++i)
      if (scatters)
        MPI_Reduce_scatter(in, out, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      else
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    /* The slowest rank's, as acc-run tells it. */
    double taken = MPI_Wtime() - begin, most;
    MPI_Reduce(&taken, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
      printf("%s%.9f", call ? ", " : "", most);
  }
  if (rank == 0)
    printf("]\n");
  if (out[0] != ranks)
    MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Finalize();
  return 0;
}
