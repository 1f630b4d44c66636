package fence_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fencedlease/fencedlease/fence"
)

// objectFlight is a write to an object: a patch, which the API server tries
// again after a conflict, or a put.
type objectFlight struct {
	step   step
	by     *process
	token  fence.Token // the one it presents, if it presents one
	copied *object     // what a put puts back

	write    *objectWrite // nil until it has read the object
	explicit fence.Token  // the token that it really presents; None if it only inherits
	judged   bool
	verdict  fence.Verdict
	current  fence.Token // when it was judged
	watched  fence.Token // the same, as far as the watch knew
}

func (f *objectFlight) advance(s *simulation) bool {
	switch {
	case f.write == nil:
		return f.build(s)
	case !f.judged:
		f.judge(s)
		return f.verdict.Allowed()
	case s.objects[f.step.Object] == f.write.old:
		s.commitObject(f)
		return false
	case f.step.Action == "put if unchanged" || f.step.Action == "create":
		return false // a conflict
	default:
		f.write, f.judged = nil, false
		return true // the API server tries again
	}
}

// build reads the object, and makes of it what the writer wants.
func (f *objectFlight) build(s *simulation) bool {
	before := s.objects[f.step.Object]
	w := &objectWrite{operation: fence.Update, old: before, writer: f.by.writer}
	after := object{Object: fence.Object{GuardedBy: new(payments)}, uid: s.clock, finalizer: f.step.N%2 == 1}
	if before != nil {
		after = *before
	}
	now := strconv.Itoa(s.clock)
	f.explicit = fence.None
	switch f.step.Action {
	case "create":
		w.operation = fence.Create
		after.data = now
	case "write":
		after.data = now
	case "status":
		w.subresource = "status"
		after.status = now
	case "unguard":
		after.GuardedBy = nil
	case "guard":
		after.GuardedBy = new(payments)
	case "finalize":
		after.finalizer = false
	case "put", "put if unchanged":
		if f.copied == nil || before == nil || f.copied.uid != before.uid {
			return false
		}
		if f.step.Action == "put if unchanged" && f.copied != before {
			return false
		}
		after = *f.copied
		after.data, after.InDeletion = now, before.InDeletion
		if !same(after.Token, before.Token) || !same(after.Write, before.Write) {
			f.explicit = tokenOf(&after) // it cannot be told from a claim
		}
	}
	if (before == nil) != (w.operation == fence.Create) {
		return false
	}
	if before != nil && before.GuardedBy == nil {
		f.explicit = tokenOf(&after) // left on it from before it was guarded
	}
	f.present(w, &after, now)
	w.new = &after
	if f.step.Action == "delete" {
		w.operation, w.new = fence.Delete, nil
	}
	f.write = w
	return true
}

// present makes the write carry its claim.
func (f *objectFlight) present(w *objectWrite, after *object, now string) {
	token := f.token.String()
	metadata := f.step.Action != "delete" && f.step.Action != "status"
	switch claim := f.step.Claim; {
	case strings.HasPrefix(claim, "extra"):
		w.tokenExtra = []string{token}
		f.explicit = f.token
		if metadata && claim == "extra" {
			after.Token = &token
		}
		if metadata && claim != "extra" && f.step.N > 2 { // another mutating webhook, after ours
			after.Token = present(map[int]string{3: "", 4: "1", 5: max(1, f.token-1).String()}[f.step.N])
		}
	case !metadata:
	case claim == "annotation":
		after.Token, f.explicit = &token, f.token
	case claim == "nonce":
		after.Token, after.Write, f.explicit = &token, new(token+"/"+now), f.token
	case claim == "token off":
		after.Token, f.explicit = nil, fence.None
	}
	if f.step.Bypass {
		w.bypassExtra = []string{"repair"}
		if metadata {
			after.Bypass = new("repair " + now)
		}
	}
}

func (f *objectFlight) judge(s *simulation) {
	f.judged, f.current, f.watched = true, s.current(), s.watched().Current()
	if !f.write.guarded() {
		f.verdict = fence.Verdict{}
		return
	}
	request := f.write.request()
	f.verdict = fence.BreakGlass(s.judge(&request), request)
	s.counts[string(f.verdict.Row)]++
}

// commitObject stores the object, and checks what was promised.
func (s *simulation) commitObject(f *objectFlight) {
	w := f.write
	switch {
	case w.new == nil && w.old.finalizer:
		left := *w.old
		left.InDeletion = true
		s.objects[f.step.Object] = &left
	case w.new == nil, w.new.InDeletion && !w.new.finalizer:
		delete(s.objects, f.step.Object)
	default:
		if w.new.GuardedBy == nil {
			w.new.uid = s.clock // if it is guarded again, that is another story
		}
		s.objects[f.step.Object] = w.new
	}
	if w.guarded() && f.verdict.Row != fence.RowUnchanged {
		s.counts["commits"]++
		s.checkMark(f)
		if !f.exempt() {
			s.checkClaim(f)
		}
	}
}

// mark is the token that the object had, if it was guarded; staysGuarded says
// that there is a guarded object after the write.
func (f *objectFlight) mark() fence.Token {
	if old := f.write.old; old != nil && old.GuardedBy != nil {
		return tokenOf(old)
	}
	return fence.None
}

func (f *objectFlight) staysGuarded() bool {
	return f.write.new != nil && f.write.new.GuardedBy != nil
}

// exempt says that the write is admitted without a claim, and rightly so: it
// breaks the glass, there is no FencedLease to be judged by, or it takes the
// finalizer off an object in deletion.
func (f *objectFlight) exempt() bool {
	w := f.write
	finishes := w.tokenExtra == nil && w.old != nil && w.old.InDeletion && w.request().Change.OnlyFinalizers
	return f.verdict.BypassReason != "" || f.verdict.Row == fence.RowNotFound || finishes
}

// checkMark is S1.
func (s *simulation) checkMark(f *objectFlight) {
	if !f.staysGuarded() {
		return
	}
	switch before, after := f.mark(), tokenOf(f.write.new); {
	case after < before:
		s.t.Fatalf("S1: the mark falls from %s to %s: %s", before, after, f)
	case f.exempt() && after != before:
		s.t.Fatalf("the mark %s becomes %s without a claim: %s", before, after, f)
	}
}

// checkClaim is S2, S3 and StrictlyNewer.
func (s *simulation) checkClaim(f *objectFlight) {
	token, object := s.token(f), f.write.old
	if object == nil {
		object = f.write.new
	}
	if token < s.committed[object.uid] {
		s.t.Fatalf("S2: after token %s has written the object, token %s writes it: %s", s.committed[object.uid], token, f)
	}
	s.committed[object.uid] = token
	switch {
	case f.verdict.Row == fence.RowNoTermYet && f.current == fence.None:
	case f.verdict.Row == fence.RowNoTermYet:
		s.t.Fatalf("admitted as if there were no term: %s", f)
	case !s.settings.cached && token != f.current:
		s.t.Fatalf("S3: token %s is admitted while the newest is %s: %s", token, f.current, f)
	case token < f.watched:
		s.t.Fatalf("S3: token %s is admitted, though the watch knows %s: %s", token, f.watched, f)
	case s.settings.strictlyNewer && f.staysGuarded() && token <= f.mark():
		s.t.Fatalf("StrictlyNewer: token %s writes under mark %s: %s", token, f.mark(), f)
	}
}

// token is the one under which something was really written: the one that the
// write presented, or one that its writer took for its own.
func (s *simulation) token(f *objectFlight) fence.Token {
	if f.explicit != fence.None {
		return f.explicit
	}
	if proven := f.verdict.Facts.Presented; s.taken[f.by.writer][proven] {
		return proven
	}
	return fence.None
}

func (f *objectFlight) String() string {
	return fmt.Sprintf("%+v by %s, presents %s, row %s, facts %+v", f.step, f.by.writer, f.explicit, f.verdict.Row, f.verdict.Facts)
}
