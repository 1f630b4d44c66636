package bounded

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestString(t *testing.T) {
	cases := map[string]struct {
		in   string
		most int
		want string
	}{
		"short":                    {in: "abc", most: 3, want: "abc"},
		"empty":                    {in: "", most: 3, want: ""},
		"cut":                      {in: "abcdefgh", most: 6, want: "abc…"},
		"cut to the ellipsis":      {in: "abcdefgh", most: 3, want: "…"},
		"not in mid-character":     {in: "aäääää", most: 6, want: "aä…"},
		"a cut inside of a letter": {in: "ääääää", most: 6, want: "ä…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := String(tc.in, tc.most)
			if got != tc.want || len(got) > tc.most || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := String(strings.Repeat("x", 1<<20), 256); len(got) != 256 {
		t.Errorf("%d bytes, want 256", len(got))
	}
}
