package webhooks

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestJoinedAuthorities(t *testing.T) {
	a, b, c, d, e := newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem
	all := slices.Concat[[]byte]
	for name, tc := range map[string]struct {
		newest, registered, want []byte
		after                    time.Duration
	}{
		"the first":                  {newest: a, want: a},
		"the same":                   {newest: a, registered: a, want: a},
		"the next":                   {newest: b, registered: a, want: all(b, a)},
		"again":                      {newest: b, registered: all(b, a), want: all(b, a)},
		"the one before comes back":  {newest: a, registered: all(b, a), want: all(a, b)},
		"as many as there may be":    {newest: e, registered: all(d, c, b, a), want: all(e, d, c, b)},
		"those that ended":           {newest: b, registered: a, want: b, after: 10 * 365 * 24 * time.Hour},
		"what is no certificate":     {newest: a, registered: []byte("none"), want: a},
		"what looks like one":        {newest: a, registered: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), want: a},
		"one of our own, in between": {newest: a, registered: all([]byte("# comment\n"), b), want: all(a, b)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := join(tc.newest, tc.registered, today.Add(tc.after)); !bytes.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
