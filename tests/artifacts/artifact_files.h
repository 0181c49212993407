// The committed fixtures: programs as text and as what jaxlib wrote of them.
#pragma once

#include <string>
#include <vector>

namespace meshd::test {

/// An artifact and text of the same module.
struct ArtifactPair {
  std::string name;  ///< "add 1.0.0"
  std::string artifact;
  std::string text;
};

/// All of fixtures/, by name.
std::vector<ArtifactPair> artifact_pairs();
/// The VHLO texts of vhlo/, by name, beside the texts of the same modules; `artifact` is the VHLO.
std::vector<ArtifactPair> vhlo_texts();
/// The serialisations of exports/, by name; `text` is empty.
std::vector<ArtifactPair> exports();

}  // namespace meshd::test
