package chart

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// recorded are the rights that the roles of a service account give, and the requests
// for which it needed some.
type recorded struct {
	rights []right
	made   []request
}

// record takes the rights from the release, and the requests from the audit log.
func record(t *testing.T, account string) recorded {
	t.Helper()
	rendered := releaseManifest(t)
	discovery := func(r request) bool { return r.ObjectRef == nil || r.ObjectRef.Resource == "" }
	return recorded{
		rights: slices.Concat(granted(t, rendered.get(t, "ClusterRole/"+account)), granted(t, rendered.get(t, "Role/"+account))),
		made:   slices.DeleteFunc(requests(t, account), discovery),
	}
}

// everybodys are what every service account may do, whatever its roles.
var everybodys = []right{{verb: "create", group: "authentication.k8s.io", resource: "selfsubjectreviews"}}

// cover says whether one of the rights is enough for what a request needs.
func cover(rights []right, need right) bool {
	return slices.ContainsFunc(rights, func(r right) bool { return r.covers(need) })
}

// kinds are those of all the rights and of all the requests: a right that is missing
// is among them by the requests that were refused for want of it.
func (r recorded) kinds() []string {
	all := map[string]bool{}
	for _, right := range r.rights {
		all[right.kind()] = true
	}
	for i := range r.made {
		if need := r.made[i].needs(); !cover(everybodys, need) {
			all[need.kind()] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// missing is an error if a request of that kind was refused, or let through for
// another reason than these rights.
func (r recorded) missing(kind string) error {
	var first error
	others := -1
	for i := range r.made {
		made := &r.made[i]
		need := made.needs()
		if need.kind() != kind || made.allowed() && (cover(r.rights, need) || cover(everybodys, need)) {
			continue
		}
		if others++; others > 0 {
			continue
		}
		verdict := "refused"
		if made.allowed() {
			verdict = "let through by no role of ours"
		}
		first = fmt.Errorf("the right to %s is missing: %s %s was %s: %q", need, made.Verb, made.RequestURI, verdict, made.Annotations["authorization.k8s.io/reason"])
	}
	if others > 0 {
		return fmt.Errorf("%w, and so were %d more", first, others)
	}
	return first
}

// unneeded is an error if there is a right of that kind without which every request
// would have been let through just as well.
func (r recorded) unneeded(kind string) error {
	var errs []error
	for i, right := range r.rights {
		if right.kind() != kind {
			continue
		}
		others := slices.Concat(r.rights[:i], r.rights[i+1:], everybodys)
		if !slices.ContainsFunc(r.made, func(made request) bool { return right.covers(made.needs()) && !cover(others, made.needs()) }) {
			errs = append(errs, fmt.Errorf("no request needed the right to %s", right))
		}
	}
	return errors.Join(errs...)
}

// without is the same story as the API server would have answered it without a right.
func (r recorded) without(gone right) recorded {
	told := recorded{rights: slices.DeleteFunc(slices.Clone(r.rights), func(other right) bool { return other == gone })}
	for _, made := range r.made {
		if need := made.needs(); !cover(told.rights, need) && !cover(everybodys, need) {
			made.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
		}
		told.made = append(told.made, made)
	}
	return told
}

// neededRights has a test for each right of these service accounts, with a name such
// as TestRelease/rights/fencedlease/patch_fencedleases/status.fencedlease.io. It fails
// if the right is missing, and if nothing needs it. What a story that ended early
// never came to is not judged.
func neededRights(t *testing.T, toTheEnd bool, accounts ...string) {
	for _, account := range accounts {
		t.Run(account, func(t *testing.T) {
			story := record(t, account)
			t.Logf("%d rights, %d requests", len(story.rights), len(story.made))
			for _, kind := range story.kinds() {
				t.Run(kind, func(t *testing.T) {
					if err := story.missing(kind); err != nil {
						t.Error(err)
					}
					err := story.unneeded(kind)
					if err != nil && !toTheEnd {
						t.Skipf("%v, so far", err)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// testsOfRightsFail shows that each test of neededRights can fail: without a right
// that of its name does and no other, and with one too many as well.
func testsOfRightsFail(t *testing.T, accounts ...string) {
	for _, account := range accounts {
		t.Run(account, func(t *testing.T) {
			story := record(t, account)
			for _, gone := range story.rights {
				t.Run(gone.String(), func(t *testing.T) {
					told := story.without(gone)
					if !slices.Equal(told.kinds(), story.kinds()) {
						t.Errorf("there are tests of %q", told.kinds())
					}
					for _, kind := range told.kinds() {
						err := errors.Join(told.missing(kind), told.unneeded(kind))
						if kind != gone.kind() && err != nil {
							t.Errorf("the test of %s fails, too: %v", kind, err)
						}
						if kind == gone.kind() && (err == nil || !strings.Contains(err.Error(), "the right to "+kind)) {
							t.Errorf("the test of %s says: %v", kind, err)
						}
					}
				})
			}
			// What nothing needs, and what another one gives already.
			given := slices.IndexFunc(story.made, func(made request) bool { return story.rights[0].covers(made.needs()) })
			for _, extra := range []right{{verb: "delete", resource: "pods"}, story.made[given].needs()} {
				t.Run(extra.String()+" too many", func(t *testing.T) {
					told := recorded{rights: append(slices.Clone(story.rights), extra), made: story.made}
					if err := told.unneeded(extra.kind()); err == nil || !strings.HasSuffix(err.Error(), "the right to "+extra.String()) {
						t.Errorf("the test of %s says: %v", extra.kind(), err)
					}
				})
			}
		})
	}
}
