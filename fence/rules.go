package fence

// Keys as they stand in messages; package api holds them for everyone else.
const (
	tokenKey = "fencedlease.io/token"
	writeKey = "fencedlease.io/write"
	guardKey = "fencedlease.io/guarded-by"
)

const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"

	// allControllers is the user of every built-in controller on a cluster that
	// does not give each its service account.
	allControllers = "system:kube-controller-manager"
)

// exempt: the garbage collector and the namespace controller finish their work.
func exempt(j judgement) *outcome {
	switch j.Username {
	case garbageCollector, namespaceController:
		return allow
	case allControllers:
		if j.Change.OnlyOwnership {
			return allow
		}
	}
	return pass
}

// unchanged: storage migration and re-encryption write what is there.
func unchanged(j judgement) *outcome {
	if j.Change.None {
		return allow
	}
	return pass
}

// statusKeys: through /status, which some built-in kinds let change metadata,
// our keys stay as they are.
func statusKeys(j judgement) *outcome {
	if j.Subresource == "" || !j.changesOurKeys() {
		return pass
	}
	return refuse(422, ReasonInvalid, "a write to /"+j.Subresource+" may not change the labels and annotations of fencedlease.io: "+
		"change them through the object itself")
}

// invalid is G1: a malformed token, in the user extra or as it would be stored.
func invalid(j judgement) *outcome {
	if j.TokenExtra != nil {
		if len(j.TokenExtra) != 1 {
			return refuse(422, ReasonInvalid, "the user extra "+tokenKey+" must have exactly one value")
		}
		if _, err := ParseToken(j.TokenExtra[0]); err != nil {
			return refuse(422, ReasonInvalid, "the user extra "+tokenKey+" is "+quote(j.TokenExtra[0])+": "+err.Error())
		}
	}
	if j.New != nil && j.New.Token != nil {
		if _, err := ParseToken(*j.New.Token); err != nil {
			return refuse(422, ReasonInvalid, "the annotation "+tokenKey+" is "+quote(*j.New.Token)+": "+err.Error())
		}
	}
	return pass
}

// moved is G3: from one FencedLease to another in one step.
func moved(j judgement) *outcome {
	if !j.Old.guarded() || !j.New.guarded() || *j.Old.GuardedBy == *j.New.GuardedBy {
		return pass
	}
	return refuse(422, ReasonInvalid, "the label "+guardKey+" cannot change from "+quote(*j.Old.GuardedBy)+" to "+quote(*j.New.GuardedBy)+
		" in one step: take it off with a token of the first, then put it on with a token of the second")
}

// notFound is G2: the FencedLease does not exist. The way out stays open.
func notFound(j judgement) *outcome {
	if j.state.Exists || j.state.Unreadable != "" {
		return pass
	}
	name := quote(j.FencedLeaseName())
	unguards := j.Change.OnlyOurKeys && j.Old.guarded() && !j.New.guarded()
	if j.Operation == Delete || unguards || j.finishesDeletion() {
		return &outcome{warning: "FencedLease " + name + " does not exist: the write was not checked"}
	}
	return refuse(422, ReasonNotFound, "FencedLease "+name+" does not exist in this namespace: create it, or take the label "+guardKey+
		" off the object in a write of its own")
}

// finishesDeletion: finalizers come off an object in deletion, nothing else.
func (r Request) finishesDeletion() bool {
	return r.Change.OnlyFinalizers && r.Old != nil && r.Old.InDeletion
}

// unreadable is G4: there is nothing to compare with. Fail closed.
func unreadable(j judgement) *outcome {
	switch {
	case j.state.Unreadable != "":
		return unavailable("the current token cannot be read (" + j.state.Unreadable + "), so nothing is admitted; try again")
	case j.state.Lease == LeaseRetired:
		return unavailable("the Lease of FencedLease " + quote(j.FencedLeaseName()) + " is still retired and is about to be adopted again; try again")
	case j.state.Lease == LeaseTaken:
		return refuse(422, ReasonLeaseConflict, "the Lease of FencedLease "+quote(j.FencedLeaseName())+" is wrapped by FencedLease "+
			quote(j.state.LeaseKeys.FencedBy)+", which keeps it: delete one of the two; without this one the label "+guardKey+
			" can be taken off the object")
	}
	return pass
}

func unavailable(message string) *outcome {
	return &outcome{refusal: &Refusal{Code: 503, Reason: ReasonUnavailable, RetryAfterSeconds: 1, Message: message}}
}

// regressed is G5: the counter was lost, and tokens would repeat.
func regressed(j judgement) *outcome {
	if j.mark() <= j.state.Current() {
		return pass
	}
	return refuse(422, ReasonRegressed, "the object was written under token "+j.mark().String()+", but the newest token of FencedLease "+
		quote(j.FencedLeaseName())+" is "+j.state.Current().String()+": the counter was lost, as by a restore. Set spec.minToken of the FencedLease above "+
		"every mark, to at least "+(j.mark()+1).String())
}

// noTermYet is G6: there is no term to protect yet.
func noTermYet(j judgement) *outcome {
	if j.state.Current() != None || j.claim != None || j.New != nil && j.New.Token != nil {
		return pass
	}
	return &outcome{warning: "no token of FencedLease " + quote(j.FencedLeaseName()) + " was minted yet: the write was not checked"}
}

// unclaimed is G7: the request presents no token.
func unclaimed(j judgement) *outcome {
	if j.claim != None || j.finishesDeletion() {
		return pass
	}
	current, holds := j.state.Current(), j.state.isTokenHolder(j.Writer)
	if left := j.stored(); left != None && left < current && !holds {
		return refuse(412, ReasonStale, "the write presents no token and would leave token "+left.String()+", but the newest is "+current.String()+
			heldBy(j.state)+": if you are a former leader, stop; else present a token you hold")
	}
	how := "in the annotation " + tokenKey + " (where the object has it already, change the annotation " + writeKey + " to <token>/<anything> as well)" +
		" or in the user extra " + tokenKey
	if !j.writesMetadata() {
		how = "in the user extra " + tokenKey
	}
	if holds {
		return refuse(428, ReasonRequired, "you hold the current token: present "+current.String()+" "+how)
	}
	return refuse(428, ReasonRequired, "the object is guarded by FencedLease "+quote(j.FencedLeaseName())+", and a token that the write merely inherits "+
		"is no claim: present yours "+how)
}

// future is G8: a token that was never minted would lock everyone out.
func future(j judgement) *outcome {
	current := j.state.Current()
	if j.claim <= current && j.stored() <= current {
		return pass
	}
	return refuse(403, ReasonNeverIssued, "token "+max(j.claim, j.stored()).String()+" was never issued: the newest of FencedLease "+
		quote(j.FencedLeaseName())+" is "+current.String()+". Take the token from the Lease, and only from your own")
}

// stale is G9: the late writer.
func stale(j judgement) *outcome {
	if j.claim == None || j.claim >= j.mark() && j.claim >= j.state.Current() {
		return pass
	}
	return refuse(412, ReasonStale, "token "+j.claim.String()+" is stale: the newest is "+max(j.mark(), j.state.Current()).String()+
		heldBy(j.state)+". You are no longer the leader: stop, and read again before you write under a new term")
}

// notNewer is G10: one write per object and term.
func notNewer(j judgement) *outcome {
	if !j.state.StrictlyNewer || j.claim == None || j.claim > j.mark() || j.Operation == Delete || !j.staysGuarded() {
		return pass
	}
	return refuse(412, ReasonStale, "token "+j.claim.String()+" already wrote this object, and tokenOrder is StrictlyNewer: "+
		"one write per object and term")
}

// mismatch is G11: what is stored must be what was claimed.
func mismatch(j judgement) *outcome {
	if !j.writesMetadata() {
		if j.state.Cached && j.claim != None && j.claim != j.mark() {
			return refuse(422, ReasonInvalid, "verification is Cached, and this request cannot store its token: seal the object first, by writing token "+
				j.claim.String()+" to its annotation "+tokenKey)
		}
		return pass
	}
	if !j.staysGuarded() {
		return pass
	}
	want, why := j.claim, "it must be the token that the request presents"
	if want == None {
		want, why = j.mark(), "a write without a claim leaves the mark exactly as it was"
	}
	if j.stored() == want {
		return pass
	}
	return &outcome{refusal: tokenMustBe(want, why)}
}

// tokenMustBe refuses an object whose token is not the one that must be stored.
func tokenMustBe(want Token, why string) *Refusal {
	message := "the annotation " + tokenKey + " of the object as it would be stored must be " + quote(want.String()) + ": " + why
	if want == None {
		message = "the object as it would be stored must have no annotation " + tokenKey + ": " + why
	}
	return &Refusal{Code: 422, Reason: ReasonInvalid, Message: message}
}

func heldBy(s State) string {
	if s.Lease != LeaseOurs || s.LeaseKeys.TokenFor == "" {
		return ""
	}
	return ", held by " + quote(s.LeaseKeys.TokenFor)
}

func refuse(code int32, reason Reason, message string) *outcome {
	return &outcome{refusal: &Refusal{Code: code, Reason: reason, Message: message}}
}
