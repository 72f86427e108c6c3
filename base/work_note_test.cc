#include "base/work_note.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

TEST(WorkNote, SaysStageVerbNodeAndOp) {
  WorkNote note;
  EXPECT_EQ(note.Describe(), "");
  note.Enter("warm-up");
  EXPECT_EQ(note.Describe(), "warm-up");
  note.Do("running", "layer/conv", "Conv2D");
  EXPECT_EQ(note.Describe(), "warm-up, running node 'layer/conv' (Conv2D)");
  note.Do("choosing batches");
  EXPECT_EQ(note.Describe(), "warm-up, choosing batches");
  note.Do("");
  EXPECT_EQ(note.Describe(), "warm-up");
  note.Do("running", "x", "Add");
  note.Enter("ending");
  EXPECT_EQ(note.Describe(), "ending");
}

TEST(WorkNote, LongAndHostileNamesStayOneShortLine) {
  WorkNote note;
  note.Enter("import");
  note.Do("importing", std::string(1'000'000, 'n') + "\n", "a\nb\x1b\xff");
  const std::string text = note.Describe();
  EXPECT_LT(text.size(), 400u);
  EXPECT_EQ(text.substr(0, 30), "import, importing node 'nnnnnn");
  EXPECT_EQ(text.substr(text.size() - 7),
            "(a?b?"
            "?)");
}

TEST(WorkNote, NobodyKeepsOneUnlessAsked) {
  EXPECT_EQ(WorkNote::Current(), nullptr);
  WorkNote note;
  WorkNote::Keep(&note);
  EXPECT_EQ(WorkNote::Current(), &note);
  WorkNote::Keep(nullptr);
  EXPECT_EQ(WorkNote::Current(), nullptr);
}

}  // namespace
}  // namespace floe
