// SPDX-License-Identifier: Apache-2.0

package kustomize

import "strings"

// vocabulary are words of the library itself, which tell nothing by themselves though a
// text has them too.
var vocabulary = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`accumulate accumulated accumulating accumulation add added already and annotations api apply are array
		bases be behavior bounds build builtin but by cannot components config configuring conflict conflicting contents could create
		data does either empty encountered entry err error exist exists expected failed field fieldPath fields file find for format found from
		gave generator get got group has have index invalid invalidIndex is json kind kustomization label labels list load loading map
		mapping matches merge merging metadata missing more multiple must name named namespace nil noGrp noNs node not nothing
		object one only open operation option options out patch patches path paths read registered replacement replacements
		resource resources same scalar schema security select selected selector sequence source stat status strategic string stringData
		such target targets than that the there this to too transformer trouble type unable unique unknown unmarshal up use valid value values
		var variable version was with wrong yaml Id
		MappingNode SequenceNode ScalarNode PatchTransformer ReplacementTransformer Kustomization No There`) {
		set[word] = true
	}
	return set
}()
