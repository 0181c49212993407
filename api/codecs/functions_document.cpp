#include "api/codecs/functions_document.h"

#include "service/numpy/function_facts.h"

namespace meshd::api {

template <>
Schema<numpy::FunctionFacts> make_schema() {
  using Facts = numpy::FunctionFacts;
  return {"NumpyFunction",
          {{"name", &Facts::name}, {"parameters", &Facts::parameters}, {"other_names", &Facts::other_names}}};
}

const SchemaBase& functions_schema() { return JsonCodec<Page<numpy::FunctionFacts>>::of(); }

const std::string& functions_document() {
  static const std::string kDocument = to_json(Page<numpy::FunctionFacts>{numpy::all_function_facts(), ""});
  return kDocument;
}

}  // namespace meshd::api
