// How the fakes of cuBLASLt and cuDNN behave, as tests say.
#pragma once

extern "C" {

enum FakeVendorBehaviour {
  FAKE_VENDOR_RIGHT,
  FAKE_VENDOR_FOLLOWS_BATCH,  // sums in an order that follows the number of rows
  FAKE_VENDOR_LESS_EXACT,     // rounds factors as TF32 does
  FAKE_VENDOR_LOSES_NAN,
  FAKE_VENDOR_FAILS,           // calls that should compute return an error
  FAKE_VENDOR_FEW_ROWS,        // computes up to four rows
  FAKE_VENDOR_SECOND_IS_RIGHT  // the first algorithm follows the batch, the second does not
};

struct FakeVendor {
  int behaviour;
  int calls;    // that computed
  int handles;  // alive
  unsigned long long workspace_bytes;
};
// Of each library. Tests write and read it while nobody calls the library.
struct FakeVendor* fake_cublaslt(void);
struct FakeVendor* fake_cudnn(void);
}
