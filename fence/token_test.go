package fence_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

func TestParseToken(t *testing.T) {
	cases := map[string]struct {
		in      string
		want    fence.Token
		wantErr error
	}{
		"the smallest":              {in: "1", want: 1},
		"an ordinary one":           {in: "57", want: 57},
		"zeros inside":              {in: "1000", want: 1000},
		"the largest, 2^53-1":       {in: "9007199254740991", want: fence.MaxToken},
		"one more than the largest": {in: "9007199254740992", wantErr: fence.ErrToken},
		"16 nines":                  {in: "9999999999999999", wantErr: fence.ErrToken},
		"beyond int64":              {in: "99999999999999999999", wantErr: fence.ErrToken},
		"2^64+1, which wraps to 1":  {in: "18446744073709551617", wantErr: fence.ErrToken},
		"empty":                     {in: "", wantErr: fence.ErrToken},
		"zero":                      {in: "0", wantErr: fence.ErrToken},
		"minus":                     {in: "-1", wantErr: fence.ErrToken},
		"minus zero":                {in: "-0", wantErr: fence.ErrToken},
		"plus":                      {in: "+1", wantErr: fence.ErrToken},
		"a leading zero":            {in: "01", wantErr: fence.ErrToken},
		"a fraction":                {in: "1.0", wantErr: fence.ErrToken},
		"an exponent":               {in: "1e3", wantErr: fence.ErrToken},
		"hexadecimal":               {in: "0x1", wantErr: fence.ErrToken},
		"underscores":               {in: "1_000", wantErr: fence.ErrToken},
		"a space before":            {in: " 1", wantErr: fence.ErrToken},
		"a space after":             {in: "1 ", wantErr: fence.ErrToken},
		"a newline after":           {in: "1\n", wantErr: fence.ErrToken},
		"a NUL after":               {in: "1\x00", wantErr: fence.ErrToken},
		"digits of another script":  {in: "٣", wantErr: fence.ErrToken},
		"full-width digits":         {in: "１", wantErr: fence.ErrToken},
		"a word":                    {in: "none", wantErr: fence.ErrToken},
		"100 KB of digits":          {in: strings.Repeat("9", 100<<10), wantErr: fence.ErrToken},
		"100 KB of zeros, then a 1": {in: strings.Repeat("0", 100<<10) + "1", wantErr: fence.ErrToken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := fence.ParseToken(tc.in)
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error: want %v, got %v", tc.wantErr, err)
			}
			if got != tc.want {
				t.Errorf("token: want %d, got %d", tc.want, got)
			}
		})
	}
}

func TestTokenString(t *testing.T) {
	cases := map[string]struct {
		token fence.Token
		want  string
	}{
		"no token":    {token: fence.None, want: "none"},
		"a token":     {token: 57, want: "57"},
		"the largest": {token: fence.MaxToken, want: "9007199254740991"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.token.String()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// Every token has one spelling, and nothing else is read as a token.
func FuzzParseToken(f *testing.F) {
	for _, seed := range []string{
		"1", "57", "9007199254740991", "9007199254740992", "", "0", "-1", "+1", "01", "1.0", "1e3", " 1", "1 ", "٣", "none",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		token, err := fence.ParseToken(in)
		if err != nil {
			if token != fence.None {
				t.Errorf("%q is refused, but read as %d", in, token)
			}
			if n, e := strconv.ParseUint(in, 10, 64); e == nil && n >= 1 && n <= uint64(fence.MaxToken) && strconv.FormatUint(n, 10) == in {
				t.Errorf("%q is a token, but refused", in)
			}
			return
		}
		if token < 1 || token > fence.MaxToken || token.String() != in {
			t.Errorf("%q is read as %d", in, token)
		}
	})
}
