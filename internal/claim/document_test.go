package claim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, body string) *document {
	t.Helper()
	d, err := parseDocument([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStamped(t *testing.T) {
	const stamp = `"fencedlease.io/token":"7","fencedlease.io/write":"7/x"`
	cases := map[string]struct {
		body string
		want string
	}{
		"beside what is there": {
			body: `{"metadata":{"annotations":{"a":"b"},"name":"n"}}`,
			want: `{"metadata":{"annotations":{"a":"b",` + stamp + `},"name":"n"}}`,
		},
		"in the place of an older claim": {
			body: `{"metadata":{"annotations":{"fencedlease.io/token":"6","fencedlease.io/write":"6/mine"}}}`,
			want: `{"metadata":{"annotations":{` + stamp + `}}}`,
		},
		"a reason to bypass stays": {
			body: `{"metadata":{"annotations":{"fencedlease.io/bypass":"why"}}}`,
			want: `{"metadata":{"annotations":{"fencedlease.io/bypass":"why",` + stamp + `}}}`,
		},
		"without metadata":  {body: `{"data":{}}`, want: `{"data":{},"metadata":{"annotations":{` + stamp + `}}}`},
		"metadata null":     {body: `{"metadata":null}`, want: `{"metadata":{"annotations":{` + stamp + `}}}`},
		"annotations null":  {body: `{"metadata":{"annotations":null}}`, want: `{"metadata":{"annotations":{` + stamp + `}}}`},
		"an annotation out": {body: `{"metadata":{"annotations":{"a":null}}}`, want: `{"metadata":{"annotations":{"a":null,` + stamp + `}}}`},
		"all else stays as it is written": {
			body: `{"Metadata":1,"big":123456789012345678901234567890,"exp":1.0e400,"html":"<&>","metadata":{},"utf":"é\u00e9"}`,
			want: `{"Metadata":1,"big":123456789012345678901234567890,"exp":1.0e400,"html":"<&>","metadata":{"annotations":{` + stamp + `}},"utf":"é\u00e9"}`,
		},
		"YAML becomes JSON, which is YAML too": {
			body: "kind: ConfigMap\nmetadata:\n  name: web\n  annotations:\ndata:\n  balance: \"1\"\n",
			want: `{"data":{"balance":"1"},"kind":"ConfigMap","metadata":{"annotations":{` + stamp + `},"name":"web"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mustParse(t, tc.body).stamped(7, "7/x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNoPlaceForAToken(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":               "",
		"a list":                "[]",
		"null":                  "null",
		"no YAML":               "{a: [",
		"metadata no object":    `{"metadata":1}`,
		"annotations no object": `{"metadata":{"annotations":["a"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseDocument([]byte(body)); err == nil {
				t.Error("it was read as an object")
			}
		})
	}
}

// A controller that writes the same again must not wake itself.
func TestNonceIsThatOfTheContent(t *testing.T) {
	const written = `{"data":{"a":"1"},"metadata":{"name":"n"}}`
	cases := map[string]struct {
		body     string
		media    string
		method   string
		wantSame bool
	}{
		"the same again": {body: written, wantSame: true},
		"the same, read back": {
			body: `{"metadata":{"resourceVersion":"9","uid":"u","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z",
				"managedFields":[{}],"annotations":{"fencedlease.io/token":"7","fencedlease.io/write":"7/x"},"name":"n"},"data":{"a": "1"}}`,
			wantSame: true,
		},
		"other data":              {body: `{"data":{"a":"2"},"metadata":{"name":"n"}}`},
		"another annotation":      {body: `{"data":{"a":"1"},"metadata":{"name":"n","annotations":{"b":"c"}}}`},
		"a reason to bypass":      {body: `{"data":{"a":"1"},"metadata":{"name":"n","annotations":{"fencedlease.io/bypass":"why"}}}`},
		"another kind of patch":   {body: written, media: "application/strategic-merge-patch+json"},
		"another kind of request": {body: written, method: "PUT"},
	}
	nonce := func(method, media, body string) string {
		t.Helper()
		got, err := mustParse(t, body).nonce(method, media, 7, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := nonce("PATCH", "application/merge-patch+json", written)
	if !strings.HasPrefix(first, "7/") || len(first) != len("7/")+16 {
		t.Errorf("a nonce is <token>/<16 digits>, got %s", first)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method, media := "PATCH", "application/merge-patch+json"
			if tc.method != "" {
				method = tc.method
			}
			if tc.media != "" {
				media = tc.media
			}
			if got := nonce(method, media, tc.body); (got == first) != tc.wantSame {
				t.Errorf("the first nonce is %s, this one %s", first, got)
			}
		})
	}
}
