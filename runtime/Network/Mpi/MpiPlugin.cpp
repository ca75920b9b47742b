// The plug-in: our network's calls are MPI's of the same meaning. The one file
// that is linked with MPI.

#include "Network/MpiNetwork.h"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>

namespace accel::rt {
namespace {

class MpiNetwork : public Network {
public:
  MpiNetwork(int self, int count) : self(self), count(count) {}
  int64_t rank() const override { return self; }
  int64_t size() const override { return count; }

  Status send(int64_t to, int64_t tag, const void *data, size_t bytes,
              Request &request) override {
    Slot &slot = take(request);
    return check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE,
                           static_cast<int>(to), static_cast<int>(tag),
                           MPI_COMM_WORLD, &slot.request),
                 "send");
  }
  Status receive(int64_t from, int64_t tag, void *data, size_t bytes,
                 Request &request) override {
    Slot &slot = take(request);
    return check(
        MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE,
                  from == kAnyone ? MPI_ANY_SOURCE : static_cast<int>(from),
                  static_cast<int>(tag), MPI_COMM_WORLD, &slot.request),
        "receive");
  }
  Status test(Request request, bool &done, Arrival *arrival) override {
    Slot &slot = slots[request - 1];
    int flag = 0;
    MPI_Status status;
    int result = MPI_Test(&slot.request, &flag, &status);
    done = flag != 0;
    if (result != MPI_SUCCESS)
      return check(result, "go on with");
    if (!done)
      return Status();
    if (arrival) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      *arrival = {status.MPI_SOURCE, static_cast<size_t>(bytes)};
    }
    slot.inUse = false;
    return Status();
  }
  void finish() override {
    for (Slot &slot : slots)
      if (slot.inUse) {
        MPI_Cancel(&slot.request);
        MPI_Request_free(&slot.request);
      }
    MPI_Finalize();
  }

private:
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    bool inUse = false;
  };
  Slot &take(Request &request) {
    size_t at = 0;
    while (at < slots.size() && slots[at].inUse)
      ++at;
    if (at == slots.size())
      slots.emplace_back();
    slots[at].inUse = true;
    request = at + 1;
    return slots[at];
  }
  static Status check(int result, const char *what) {
    if (result == MPI_SUCCESS)
      return Status();
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(result, text, &length);
    return Status::error(std::string("cannot ") + what +
                         " a message by MPI: " + text);
  }

  int self, count;
  std::vector<Slot> slots;
};

} // namespace
} // namespace accel::rt

extern "C" accel::rt::Network *accelMakeMpiNetwork1(char *error,
                                                    size_t errorBytes) {
  // Ranks are forked, and never call MPI. Signals are reported by us.
  setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
  setenv("OMPI_MCA_opal_signal", "", 0);
  // The service's thread is not the one that starts MPI: one at a time.
  int has = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &has) !=
      MPI_SUCCESS) {
    std::snprintf(error, errorBytes, "MPI_Init_thread failed");
    return nullptr;
  }
  if (has < MPI_THREAD_SERIALIZED) {
    std::snprintf(error, errorBytes,
                  "expected MPI_THREAD_SERIALIZED, found a lower level");
    return nullptr;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return new accel::rt::MpiNetwork(rank, size);
}
