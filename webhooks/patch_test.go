package webhooks

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func TestSetStrings(t *testing.T) {
	want := map[string]string{"fencedlease.io/a": "1", "fencedlease.io/b": "2", "fencedlease.io/gone": ""}
	cases := map[string]struct {
		before, after string
		ops           int
	}{
		"no map": {
			before: `{"metadata":{}}`,
			after:  `{"metadata":{"labels":{"fencedlease.io/a":"1","fencedlease.io/b":"2"}}}`,
			ops:    3,
		},
		"others stay": {
			before: `{"metadata":{"labels":{"x/y~z":"0","fencedlease.io/b":"forged","fencedlease.io/gone":"forged"}}}`,
			after:  `{"metadata":{"labels":{"x/y~z":"0","fencedlease.io/a":"1","fencedlease.io/b":"2"}}}`,
			ops:    3,
		},
		"an empty value is there": {
			before: `{"metadata":{"labels":{"fencedlease.io/a":"1","fencedlease.io/b":"2","fencedlease.io/gone":""}}}`,
			after:  `{"metadata":{"labels":{"fencedlease.io/a":"1","fencedlease.io/b":"2"}}}`,
			ops:    1,
		},
		"nothing to do": {
			before: `{"metadata":{"labels":{"fencedlease.io/a":"1","fencedlease.io/b":"2"}}}`,
			after:  `{"metadata":{"labels":{"fencedlease.io/a":"1","fencedlease.io/b":"2"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var object struct {
				Metadata metadata `json:"metadata"`
			}
			if err := decode([]byte(tc.before), &object); err != nil {
				t.Fatal(err)
			}
			ops := setStrings("/metadata/labels", object.Metadata.Labels, want)
			if len(ops) != tc.ops {
				t.Errorf("%d operations, want %d: %v", len(ops), tc.ops, ops)
			}
			raw, err := json.Marshal(ops)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonpatch.DecodePatch(raw)
			if err != nil {
				t.Fatal(err)
			}
			after := []byte(tc.before)
			if len(ops) > 0 {
				if after, err = patch.Apply(after); err != nil {
					t.Fatal(err)
				}
			}
			if !jsonpatch.Equal(after, []byte(tc.after)) {
				t.Errorf("got  %s\nwant %s", after, tc.after)
			}
		})
	}
}
