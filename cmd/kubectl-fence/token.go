package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/fencedlease/fencedlease/fence"
)

// tokenVariable is the environment variable that --token defaults to; `kubectl
// fence run` sets it for its command.
const tokenVariable = "FENCING_TOKEN"

// tokenFlag is the flag --token: the claim of what a verb writes.
type tokenFlag struct {
	flags *pflag.FlagSet
	value string
}

func (t *tokenFlag) addTo(flags *pflag.FlagSet) {
	t.flags = flags
	flags.StringVar(&t.value, "token", "", "Fencing token to present. Defaults to the environment variable "+tokenVariable+".")
}

// get is the token, and [fence.None] if none was given.
func (t *tokenFlag) get() (fence.Token, error) {
	value, from := t.value, "--token"
	if !t.flags.Changed("token") {
		value, from = os.Getenv(tokenVariable), "$"+tokenVariable
		if value == "" {
			return fence.None, nil
		}
	}
	token, err := fence.ParseToken(value)
	if err != nil {
		return fence.None, fmt.Errorf("%s is %q: %w", from, value, err)
	}
	return token, nil
}

// errNoToken says how to give a token, and how to come by one.
var errNoToken = errors.New("a fencing token is needed: give the one that you got when you acquired the Lease, in --token or $" + tokenVariable +
	"; `kubectl fence status` shows the current one, which is yours only if you are the holder")

// need is the token, and an error if none was given.
func (t *tokenFlag) need() (fence.Token, error) {
	token, err := t.get()
	if err == nil && token == fence.None {
		err = errNoToken
	}
	return token, err
}
