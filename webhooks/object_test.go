package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

func TestDecodeMetadataMatchesNamesExactly(t *testing.T) {
	raw := []byte(`{
		"METADATA": {"labels": {"fencedlease.io/guarded-by": "forged"}},
		"Metadata": {"annotations": {"fencedlease.io/token": "99"}},
		"metadata": {"Labels": {"fencedlease.io/guarded-by": "forged"}, "name": "x", "annotations": {"fencedlease.io/write": "1/a"}}
	}`)
	got, err := decodeMetadata(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := metadata{Name: "x", Annotations: map[string]string{"fencedlease.io/write": "1/a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeMetadataRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":            "",
		"no JSON":            "nope",
		"metadata no object": `{"metadata": 1}`,
		"labels no strings":  `{"metadata": {"labels": {"a": 1}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeMetadata([]byte(raw)); err == nil {
				t.Errorf("decoded as %+v", got)
			}
		})
	}
}

// object is a JSON object with these parts of its metadata, and this data.
func object(data string, metadata ...string) []byte {
	return []byte(`{"data":{"balance":"` + data + `"},"metadata":{` + strings.Join(metadata, ",") + `}}`)
}

func TestChangeOf(t *testing.T) {
	const (
		guarded    = `"labels":{"app":"a","fencedlease.io/guarded-by":"x"}`
		unguarded  = `"labels":{"app":"a"}`
		otherLabel = `"labels":{"app":"b"}`
		token      = `"annotations":{"fencedlease.io/token":"1"}`
		two        = `"finalizers":["a","b"]`
		one        = `"finalizers":["b"]`
		other      = `"finalizers":["c"]`
		owned      = `"ownerReferences":[{"uid":"1"}]`
		manager1   = `"managedFields":[{"manager":"1"}]`
		manager2   = `"managedFields":[{"manager":"2"}]`
	)
	cases := map[string]struct {
		old, updated []byte
		want         fence.Change
	}{
		"data": {old: object("1"), updated: object("2")},
		"data and the label": {
			old: object("1", guarded), updated: object("2", unguarded),
		},
		"the label": {
			old: object("1", guarded, manager1), updated: object("1", unguarded, manager2),
			want: fence.Change{OnlyOurKeys: true},
		},
		"the label, the last of all": {
			old: object("1", `"labels":{"fencedlease.io/guarded-by":"x"}`, token), updated: object("1"),
			want: fence.Change{OnlyOurKeys: true},
		},
		"the label and another": {
			old: object("1", guarded), updated: object("1", otherLabel),
		},
		"a finalizer less": {
			old: object("1", two, manager1), updated: object("1", one, manager2),
			want: fence.Change{OnlyFinalizers: true, OnlyOwnership: true},
		},
		"the last finalizer": {
			old: object("1", one), updated: object("1"),
			want: fence.Change{OnlyFinalizers: true, OnlyOwnership: true},
		},
		"a finalizer more": {
			old: object("1", one), updated: object("1", two),
			want: fence.Change{OnlyOwnership: true},
		},
		"a finalizer replaced": {
			old: object("1", two), updated: object("1", other),
			want: fence.Change{OnlyOwnership: true},
		},
		"a finalizer less, and the token": {
			old: object("1", two, token), updated: object("1", one),
		},
		"an owner": {
			old: object("1"), updated: object("1", owned),
			want: fence.Change{OnlyOwnership: true},
		},
		"a field more": {
			old: object("1"), updated: []byte(`{"data":{"balance":"1"},"immutable":true,"metadata":{}}`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := changeOf(tc.old, tc.updated)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := changeOf(object("1"), []byte("nope")); err == nil {
		t.Error("an object that is no JSON was compared")
	}
}
