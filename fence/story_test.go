package fence_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/fencedlease/fencedlease/fence"
)

// TestStories runs the scripts in testdata/stories, each of which tells what the
// protocol does; testdata/README.md explains their commands.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{world: world{objects: map[string]*object{}}, copies: map[string]*object{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.run(t, d)
		})
	})
}

// story is a world in which a script tells what happens.
type story struct {
	world

	clock       int // of nobody's watch: it only makes times differ
	copies      map[string]*object
	webhooksOff bool
	watchPaused bool
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.clock++
	args := readArgs(t, d)
	var out string
	switch d.Cmd {
	case "fencedlease":
		out = s.setFencedLease(args)
	case "lease":
		out = s.setLease(args)
	case "operator":
		out = s.operator(args)
	case "webhooks":
		s.webhooksOff = args.name() == "off"
		out = "the webhooks are " + args.name()
	case "watch":
		s.watchPaused = args.name() == "lags"
		out = "the guard's watch " + args.name()
	case "acquire", "renew", "release", "rebuild", "forge":
		out = s.writeLease(d.Cmd, args)
	case "create", "write", "seal", "unguard", "status", "finalize", "delete":
		out = s.writeObject(d.Cmd, args)
	case "read":
		s.copies[args.name()] = s.objects[args.name()]
		out = "a copy of " + s.describe(args.name())
	default:
		d.Fatalf(t, "no such command: %s", d.Cmd)
	}
	if unused := args.unused(); unused != "" {
		d.Fatalf(t, "%s does not take %s", d.Cmd, unused)
	}
	if !s.watchPaused {
		s.catchUp()
	}
	return out + "\n"
}

// setFencedLease creates, changes or deletes the FencedLease, as its owner does.
func (s *story) setFencedLease(args *arguments) string {
	if args.flag("gone") {
		s.fenced = nil
		return "fencedlease: gone"
	}
	fl := fencedLease{minToken: 1, identities: []fence.IdentityKind{fence.KindPod}}
	if s.fenced != nil {
		fl = *s.fenced
	}
	if n, ok := args.value("minToken"); ok {
		fl.minToken = args.token(n)
	}
	if kind, ok := args.value("identities"); ok {
		fl.identities = []fence.IdentityKind{fence.IdentityKind(kind)}
	}
	if order, ok := args.value("tokenOrder"); ok {
		fl.strictlyNewer = order == "StrictlyNewer"
	}
	if verification, ok := args.value("verification"); ok {
		fl.cached = verification == "Cached"
	}
	if enforcement, ok := args.value("enforcement"); ok {
		fl.warn = enforcement == "Warn"
	}
	s.fenced = &fl
	return s.describeFencedLease()
}

// setLease changes the Lease in the storage, as a restore from a backup does:
// no webhook sees it.
func (s *story) setLease(args *arguments) string {
	if args.flag("gone") {
		s.lease = nil
		return s.describeLease()
	}
	lease := fence.Lease{}
	if s.lease != nil {
		lease = *s.lease
	}
	for key, field := range map[string]*string{
		"holder": &lease.Holder, "token": &lease.Token, "token-for": &lease.TokenFor, "token-holder": &lease.TokenHolder,
		"fenced-by": &lease.FencedBy,
	} {
		if v, ok := args.value(key); ok {
			*field = v
			s.lease = &lease
		}
	}
	return s.describeLease()
}

// operator does what the controller does, one thing at a time.
func (s *story) operator(args *arguments) string {
	action := args.name()
	if action == "mirror" { // status.token follows the Lease
		fl := *s.fenced
		fl.status = max(fl.status, s.lease.CurrentToken())
		s.fenced = &fl
		return s.describeFencedLease()
	}
	write := fence.LeaseWrite{Old: s.lease, Writer: "pod/operator", ByOperator: true}
	if s.lease != nil {
		write.New = *s.lease
	}
	switch action {
	case "adopt":
		write.New.FencedBy = payments
	case "retire":
		write.New.Retired = "true"
	case "unretire":
		write.New.Retired = ""
	case "raise":
		write.New.TokenFor = ""
	default:
		return "no such action: " + action
	}
	return s.commitLease(&write)
}

// writeLease is a write of the Lease by a candidate, or by somebody else.
func (s *story) writeLease(cmd string, args *arguments) string {
	name, now := args.name(), strconv.Itoa(s.clock)
	write := fence.LeaseWrite{Old: s.lease, Writer: fence.Identity(args.or("by", "pod/"+name))}
	if s.lease != nil {
		write.New = *s.lease
	}
	if cmd != "forge" {
		write.New.RenewTime = now
	}
	if cmd == "rebuild" { // a client that puts a Lease of its own making
		write.New.Keys = fence.Keys{}
	}
	switch cmd {
	case "acquire", "rebuild":
		if write.New.Holder != name {
			write.New.Holder, write.New.AcquireTime, write.New.Transitions = name, now, now
		}
	case "release":
		write.New.Holder, write.New.AcquireTime = "", now
	}
	write.New.Token = args.or("token", write.New.Token)
	write.New.TokenFor = args.or("token-for", write.New.TokenFor)
	write.New.TokenHolder = args.or("token-holder", write.New.TokenHolder)
	write.New.FencedBy = args.or("fenced-by", write.New.FencedBy)
	return s.commitLease(&write)
}

func (s *story) commitLease(write *fence.LeaseWrite) string {
	lease := write.New
	if !s.webhooksOff {
		keys, refusal := s.admitLease(write)
		if refusal != nil {
			return describeRefusal("", refusal)
		}
		lease.Keys = keys
	}
	s.lease = &lease
	return s.describeLease()
}

// writeObject is a write to an object.
func (s *story) writeObject(cmd string, args *arguments) string {
	name := args.name()
	w := objectWrite{operation: fence.Update, old: s.objects[name], new: s.newObject(cmd, name, args)}
	switch cmd {
	case "create":
		w.operation = fence.Create
	case "delete":
		w.operation = fence.Delete
	case "status":
		w.subresource = "status"
	}
	w.writer = fence.Identity(args.or("by", "user/nobody"))
	if extra, ok := args.value("extra"); ok {
		w.tokenExtra = []string{extra}
	}
	if reason, ok := args.value("bypass-extra"); ok {
		w.bypassExtra = []string{reason}
	}
	if !args.flag("unstamped") {
		w.stamp()
	}
	mayBypass := args.flag("may-bypass")
	if !w.guarded() {
		return s.commitObject(name, &w, "allowed: nothing guards it")
	}

	request := w.request()
	verdict := s.judge(&request)
	if mayBypass {
		verdict = fence.BreakGlass(verdict, request)
	}
	if !verdict.Allowed() {
		return describeRefusal(" by "+string(verdict.Row), verdict.Refusal)
	}
	how := "allowed by "
	if verdict.Refused != nil {
		how = "allowed in spite of "
	}
	out := s.commitObject(name, &w, how+string(verdict.Row))
	if verdict.Warning != "" {
		out += wrapped("warning: " + verdict.Warning)
	}
	return out
}

// newObject is the object as the writer would have it; nil for a delete.
func (s *story) newObject(cmd, name string, args *arguments) *object {
	after := object{Object: fence.Object{GuardedBy: new(payments)}, uid: s.clock}
	if before := s.objects[name]; before != nil {
		after = *before
	}
	if args.flag("from-copy") { // a put of what was read before, without its resourceVersion
		after = *s.copies[name]
	}
	switch cmd {
	case "delete":
		return nil
	case "create":
		after.finalizer = args.flag("finalizer")
	case "write":
		after.data = strconv.Itoa(s.clock)
	case "status":
		after.status = strconv.Itoa(s.clock)
	case "unguard":
		after.GuardedBy = nil
	case "finalize":
		after.finalizer = false
	}
	for key, field := range map[string]**string{
		"token": &after.Token, "nonce": &after.Write, "bypass": &after.Bypass, "guarded-by": &after.GuardedBy,
	} {
		if v, ok := args.value(key); ok {
			*field = present(strings.TrimPrefix(v, "-"))
		}
	}
	return &after
}

func (s *story) commitObject(name string, w *objectWrite, verdict string) string {
	switch {
	case w.operation == fence.Delete && w.old.finalizer:
		after := *w.old
		after.InDeletion = true
		s.objects[name] = &after
	case w.operation == fence.Delete, w.new.InDeletion && !w.new.finalizer:
		delete(s.objects, name)
	default:
		s.objects[name] = w.new
	}
	return verdict + "; " + s.describe(name)
}

func (s *story) describe(name string) string {
	o := s.objects[name]
	if o == nil {
		return name + " is gone"
	}
	out := name + " has no token"
	if o.Token != nil {
		out = name + " has token " + *o.Token
	}
	if o.GuardedBy == nil {
		out += ", and nothing guards it"
	}
	if o.InDeletion {
		out += ", and waits for its finalizer"
	}
	return out
}

func (s *story) describeFencedLease() string {
	out := "fencedlease: token " + s.fenced.status.String()
	if s.fenced.minToken > 1 {
		out += ", minToken " + s.fenced.minToken.String()
	}
	if kind := s.fenced.identities[0]; kind != fence.KindPod {
		out += ", identities " + string(kind)
	}
	if s.fenced.strictlyNewer {
		out += ", StrictlyNewer"
	}
	if s.fenced.cached {
		out += ", Cached"
	}
	if s.fenced.warn {
		out += ", Warn"
	}
	return out
}

func (s *story) describeLease() string {
	l := s.lease
	if l == nil {
		return "lease: gone"
	}
	out := "lease: held by " + l.Holder
	if l.Holder == "" {
		out = "lease: free"
	}
	if l.Token == "" {
		out += "; no token"
	} else {
		out += fmt.Sprintf("; token %s, minted to %s (%s)", l.Token, or(l.TokenFor, "nobody"), or(l.TokenHolder, "writer not known yet"))
	}
	switch fence.LeaseStateOf(l.Keys, payments) {
	case fence.LeaseUnfenced:
		out += "; not fenced"
	case fence.LeaseRetired:
		out += "; retired"
	case fence.LeaseTaken:
		out += "; wrapped by " + l.FencedBy
	}
	return out
}

func describeRefusal(by string, r *fence.Refusal) string {
	causes := make([]string, 0, len(r.Facts.Causes()))
	for _, cause := range r.Facts.Causes() {
		causes = append(causes, string(cause.Type)+"="+cause.Value)
	}
	return fmt.Sprintf("refused%s: %d %s", by, r.Code, r.Reason) + wrapped(r.Message) + wrapped(strings.Join(causes, " "))
}

// wrapped are the words in indented lines of their own.
func wrapped(words string) string {
	const width = 90
	out, column := "", width
	for word := range strings.FieldsSeq(words) {
		if column+1+len(word) > width {
			out, column = out+"\n ", 1
		}
		out, column = out+" "+word, column+1+len(word)
	}
	return out
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// arguments are those of one command: a name, flags, and values.
type arguments struct {
	t    *testing.T
	data *datadriven.TestData
	used map[string]bool
}

func readArgs(t *testing.T, d *datadriven.TestData) *arguments {
	t.Helper()
	return &arguments{t: t, data: d, used: map[string]bool{}}
}

// name is the first argument.
func (a *arguments) name() string {
	a.t.Helper()
	if len(a.data.CmdArgs) == 0 || len(a.data.CmdArgs[0].Vals) != 0 {
		a.data.Fatalf(a.t, "%s what?", a.data.Cmd)
	}
	key := a.data.CmdArgs[0].Key
	a.used[key] = true
	return key
}

func (a *arguments) flag(key string) bool {
	a.used[key] = true
	return a.data.HasArg(key)
}

func (a *arguments) value(key string) (string, bool) {
	for _, arg := range a.data.CmdArgs {
		if arg.Key == key && len(arg.Vals) == 1 {
			a.used[key] = true
			return arg.Vals[0], true
		}
	}
	return "", false
}

func (a *arguments) or(key, otherwise string) string {
	if v, ok := a.value(key); ok {
		return v
	}
	return otherwise
}

func (a *arguments) token(s string) fence.Token {
	a.t.Helper()
	token, err := fence.ParseToken(s)
	if err != nil {
		a.data.Fatalf(a.t, "%q: %v", s, err)
	}
	return token
}

// unused is an argument that the command did not read: a script with a typing
// error must not pass.
func (a *arguments) unused() string {
	for _, arg := range a.data.CmdArgs {
		if !a.used[arg.Key] {
			return arg.String()
		}
	}
	return ""
}
