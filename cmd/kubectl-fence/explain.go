package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/refusal"
)

// explain says why a write was refused, and what to do.
type explain struct {
	*factory

	file   string
	output string
}

func newExplain(f *factory) *cobra.Command {
	e := &explain{factory: f}
	cmd := &cobra.Command{
		Use:   "explain [REASON | ERROR | STATUS] [-f FILE]",
		Short: "Say why a write was refused, and what to do",
		Long: text(`
			Say why a write was refused, and what to do.

			It takes what there is: the reason; the error that kubectl, or any other program,
			printed; or the Status in JSON or YAML that the API server answered with, which has the
			values behind the refusal as well. From the argument, from a file, or from the standard
			input. It asks no server.

			On a terminal, without any of them, it lists all reasons.`),
		Example: examples(`
			# All reasons
			kubectl fence explain

			# A reason
			kubectl fence explain FencingTokenStale

			# What kubectl said
			kubectl apply -f state.yaml 2>&1 | kubectl fence explain

			# A Status that a program has logged
			kubectl fence explain -f status.json`),
		Args:      cobra.ArbitraryArgs,
		ValidArgs: completedReasons(),
		RunE:      func(_ *cobra.Command, args []string) error { return e.run(strings.Join(args, " ")) },
	}
	cmd.Flags().StringVarP(&e.file, "filename", "f", "", "File with the error or the Status; - is the standard input.")
	cmd.Flags().StringVarP(&e.output, "output", "o", "", `Output format: "json" or "yaml".`)
	return cmd
}

// explanation is what `explain -o json` prints, a list of them for all reasons.
type explanation struct {
	Reason  fence.Reason `json:"reason"`
	Code    int32        `json:"code"` // HTTP status
	Meaning string       `json:"meaning"`
	Remedy  string       `json:"remedy"`

	// What a Status said beside the reason.
	Message        string `json:"message,omitempty"`
	PresentedToken int64  `json:"presentedToken,omitempty"`
	MarkToken      int64  `json:"markToken,omitempty"`
	CurrentToken   int64  `json:"currentToken,omitempty"`
	Holder         string `json:"holder,omitempty"`
	TokenHolder    string `json:"tokenHolder,omitempty"`
}

func (e *explain) run(text string) error {
	text, err := e.input(text)
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		all := make([]explanation, 0, len(reasons))
		for _, reason := range reasons {
			all = append(all, explanationOf(reason))
		}
		return e.print(all, printReasons)
	}
	found := explanationsOf(text)
	if len(found) == 0 {
		return errors.New("this is no refusal by a FencedLease, as far as can be told: `kubectl fence explain` lists their reasons")
	}
	return e.print(found, printExplanations)
}

// input is the text to explain: the argument, the file, or what is on the
// standard input, unless that is a terminal.
func (e *explain) input(text string) (string, error) {
	switch {
	case text != "" && e.file != "":
		return "", errors.New("name a file, or give the error itself, not both")
	case text != "":
		return text, nil
	case e.file == "-" || e.file == "" && !(term.TTY{In: e.In}).IsTerminalIn():
		data, err := io.ReadAll(e.In)
		return string(data), err
	case e.file != "":
		data, err := os.ReadFile(e.file)
		return string(data), err
	default:
		return "", nil
	}
}

func explanationOf(reason fence.Reason) explanation {
	r := remedies[reason]
	return explanation{Reason: reason, Code: r.code, Meaning: r.means, Remedy: r.remedy}
}

// explanationsOf finds the refusals in a text: a Status, or words that name them.
func explanationsOf(text string) []explanation {
	if found, ok := statusIn(text); ok {
		e := explanationOf(found.Reason)
		e.Message, e.Holder, e.TokenHolder = found.Message, found.Facts.Holder, string(found.Facts.Writer)
		e.PresentedToken, e.MarkToken, e.CurrentToken = int64(found.Facts.Presented), int64(found.Facts.Mark), int64(found.Facts.Current)
		return []explanation{e}
	}
	found := reasonsIn(text)
	if len(found) == 0 {
		found = reasonsOfCodes(text)
	}
	explanations := make([]explanation, 0, len(found))
	for _, reason := range found {
		explanations = append(explanations, explanationOf(reason))
	}
	return explanations
}

// statusIn is the refusal in a Status, in JSON or YAML, with or without words
// around it.
func statusIn(text string) (fence.Refusal, bool) {
	status := &metav1.Status{}
	if from, to := strings.Index(text, "{"), strings.LastIndex(text, "}"); from >= 0 && to > from {
		if json.Unmarshal([]byte(text[from:to+1]), status) == nil {
			return refusal.Of(status)
		}
	}
	if yaml.Unmarshal([]byte(text), status) != nil {
		return fence.Refusal{}, false
	}
	return refusal.Of(status)
}

func (e *explain) print(list []explanation, human func(io.Writer, []explanation) error) error {
	var what any = list
	if len(list) == 1 {
		what = list[0]
	}
	if e.output == "" {
		return human(e.Out, list)
	}
	return writeAs(e.Out, e.output, what)
}

// printReasons lists all reasons.
func printReasons(to io.Writer, list []explanation) error {
	var text strings.Builder
	for _, e := range list {
		fmt.Fprintf(&text, "%d %s\n    %s\n    Do: %s\n", e.Code, e.Reason, e.Meaning, e.Remedy)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// printExplanations tells of refusals, each with the values behind it.
func printExplanations(to io.Writer, list []explanation) error {
	var text strings.Builder
	for i, e := range list {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s (HTTP %d)\n\nWhat happened: %s\n", e.Reason, e.Code, e.Meaning)
		for _, fact := range e.facts() {
			fmt.Fprintf(&text, "    %s\n", fact)
		}
		if e.Message != "" {
			fmt.Fprintf(&text, "The server said: %s\n", e.Message)
		}
		fmt.Fprintf(&text, "What to do: %s\n", e.Remedy)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// facts are the values behind a refusal, in words.
func (e explanation) facts() []string {
	var facts []string
	add := func(known bool, words ...string) {
		if known {
			facts = append(facts, strings.Join(words, ""))
		}
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	add(e.PresentedToken != 0, "the write presented token ", number(e.PresentedToken))
	add(e.MarkToken != 0, "the object was last written with token ", number(e.MarkToken))
	add(e.CurrentToken != 0, "the current token is ", number(e.CurrentToken))
	add(e.Holder != "", "the holder of the Lease is ", strconv.Quote(e.Holder))
	add(e.TokenHolder != "", "the token was minted to ", e.TokenHolder)
	return facts
}

func completedReasons() []cobra.Completion {
	completions := make([]cobra.Completion, 0, len(reasons))
	for _, reason := range reasons {
		completions = append(completions, string(reason))
	}
	return completions
}
