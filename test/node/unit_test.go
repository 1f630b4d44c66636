package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	values := map[string]string{"A": "1", "B": "$(A)"}
	for text, want := range map[string]string{
		"$(A)":         "1",
		"x$(A)$(A)y":   "x11y",
		"$(B)":         "$(A)", // once only
		"$$(A)":        "$(A)",
		"$$$(A)":       "$1",
		"$(C) $A $( $": "$(C) $A $( $",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	const text = "before\none\ntwo\nthree\n"
	begin := int64(len("before\n"))
	for lines, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 3: "one\ntwo\nthree\n", 9: "one\ntwo\nthree\n"} {
		for _, end := range []int64{-1, int64(len(text))} {
			if got := text[tail(strings.NewReader(text), begin, end, lines):]; got != want {
				t.Errorf("%d lines: %q, want %q", lines, got, want)
			}
		}
	}
}

// A volume shows one version of its files, and nothing of others.
func TestPayload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, p := range []payload{
		{"a": {[]byte("1"), 0o644}, "d/e": {[]byte("2"), 0o400}},
		{"a": {[]byte("3"), 0o600}, "b": {[]byte("4"), 0o640}},
		{},
	} {
		if err := p.write(dir, nil); err != nil {
			t.Fatal(err)
		}
		for path, f := range p {
			data, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil || string(data) != string(f.data) {
				t.Errorf("%s: %q, %v", path, data, err)
			}
			info, err := os.Stat(filepath.Join(dir, path))
			if err != nil || info.Mode().Perm() != os.FileMode(f.mode&0o777) {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), "..version_") {
				names = append(names, entry.Name())
			}
		}
		want := []string{dataLink}
		for path := range p {
			want = append(want, strings.Split(path, "/")[0])
		}
		slices.Sort(want)
		if !slices.Equal(names, want) || len(entries) != len(want)+1 {
			t.Errorf("there is %v, want %v and one version", entries, want)
		}
	}
	if err := (payload{"../x": {}}).write(dir, nil); err == nil {
		t.Error("a path may leave the volume")
	}
}

// Addresses are used in turn, none twice, and neither the bridge's nor the subnet's own.
func TestAddresses(t *testing.T) {
	t.Parallel()
	n := &network{address: netip.MustParsePrefix("10.1.1.2/29"), used: map[netip.Addr]bool{}, last: netip.MustParseAddr("10.1.1.2")}
	var got []string
	for {
		address, err := n.take()
		if err != nil {
			break
		}
		got = append(got, address.String())
	}
	if want := []string{"10.1.1.3", "10.1.1.4", "10.1.1.5", "10.1.1.6", "10.1.1.1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A Pod that is deleted while its network is made gets none, and leaves nothing.
func TestConnectIsCancelled(t *testing.T) {
	spawner := newSpawner()
	defer spawner.close()
	n := &network{
		bridge: "pods9", address: netip.MustParsePrefix("10.1.1.1/29"), spawner: spawner,
		used: map[netip.Addr]bool{}, last: netip.MustParseAddr("10.1.1.1"),
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := n.connect(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "0123456789abcdef"}})
	if s != nil || err == nil || len(n.used) > 0 {
		t.Errorf("got %v with %d addresses in use: %v", s, len(n.used), err)
	}
}
