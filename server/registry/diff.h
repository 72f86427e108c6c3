// What is to be done for the servables that there are to become those desired. A pure function.
#pragma once

#include <vector>

#include "server/registry/desired.h"
#include "server/registry/model_state.h"

namespace floe::server {

struct Actions {
  struct Load {
    AttemptKey key;
    TimePoint at;         // not before
    bool staged = false;  // for the configuration that is being tried
  };
  struct Failure {
    AttemptKey key;
    absl::Status error;
  };
  std::vector<Load> load;
  std::vector<Failure> fail;         // there is nothing to load
  std::vector<ServableId> cancel;    // their loads are wanted no more
  std::vector<ServableId> publish;   // requests may find them from now on
  std::vector<ServableId> withdraw;  // requests find them no more, and they are unloaded
};

// Nothing is taken away before what takes its place is there.
Actions DiffOf(const AllDesired& desired, const Servables& actual);

}  // namespace floe::server
