// What stub_library.cc says when it is opened as libfloe_cuda.so.
#pragma once

#include "kernels/cuda/library.h"

extern "C" {
// The table that it gives; tests write to it. Its calls are null but for those about versions,
// devices, properties, loading of kernels, and errors.
FloeCudaLibrary* stub_table(void);

struct StubAnswers {
  int driver, runtime;
  int count, count_error;
  int major, minor;
  int load_error;
  int most_threads;
};
StubAnswers* stub_answers(void);
}
