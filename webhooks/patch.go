package webhooks

import (
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// setStrings is the JSON patch that makes entries of a map of labels or
// annotations equal to want, where "" stands for absent. Nothing else is
// touched, so that fields this program does not know stay as they are.
func setStrings(path string, have, want map[string]string) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, present := have[key]
		at := path + "/" + pointerEscapes.Replace(key)
		switch {
		case want[key] == "" && present:
			ops = append(ops, jsonpatch.NewOperation("remove", at, nil))
		case want[key] != "" && value != want[key]:
			if have == nil {
				ops = append(ops, jsonpatch.NewOperation("add", path, map[string]string{}))
				have = map[string]string{}
			}
			ops = append(ops, jsonpatch.NewOperation("add", at, want[key]))
		}
	}
	return ops
}
