package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fencedlease/fencedlease/internal/bounded"
)

// status shows FencedLeases, and what is under one.
type status struct {
	*factory

	print         *genericclioptions.PrintFlags
	allNamespaces bool
	noHeaders     bool
}

func newStatus(f *factory) *cobra.Command {
	s := &status{factory: f, print: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "status [FENCEDLEASE]",
		Short: "Show who holds which token, and what it has written",
		Long: text(`
			Show the FencedLeases of the namespace: who holds each, with which token, and when the
			holder last renewed.

			With a name: that FencedLease and what is under it, as it is now. Each guarded object has
			a mark, the token that it was last written with, and stands to the current token so:

			* sealed: the current token has written it; all older ones are shut out of it.
			* behind: the current token has not written it yet.
			* unmarked: it was guarded before the first term, and no token has written it.
			* regressed: its mark is ahead of the counter, which was lost.

			Whether a Lease has expired is told by the clock of this machine, for you only: nothing
			in the protocol trusts a clock. Kinds that you may not list are named.
			Events tell of terms, and of writes whose tokens were not in order: each one that was
			admitted all the same, and samples of those that were refused. All of these are in the
			API server's audit log, and counted in the metric fencedlease_guard_verdicts_total.

			With -o json or yaml it is a LeaseStatus, or a LeaseStatusList whose items are such, of
			cli.fencedlease.io/v1: fields may be added, none is renamed or removed. With -o name and a
			FencedLease, it names the objects under it.`),
		Example: examples(`
			# The FencedLeases of the namespace
			kubectl fence status

			# Of all namespaces, with more columns
			kubectl fence status -A -o wide

			# One, and what is under it
			kubectl fence status payments

			# Objects that the current token has not written yet
			kubectl fence status payments -o json | jq -r '.objects[] | select(.state != "sealed") | .name'`),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: f.completeLeases,
		RunE:              func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	s.print.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = strings.Replace(cmd.Flags().Lookup("output").Usage, "json, ", "wide, json, ", 1)
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "Show the FencedLeases of all namespaces.")
	cmd.Flags().BoolVar(&s.noHeaders, "no-headers", false, "Print tables without headers.")
	return cmd
}

func (s *status) run(ctx context.Context, args []string) error {
	if s.allNamespaces && len(args) > 0 {
		return errors.New("a FencedLease is of one namespace: name it with -n instead of -A")
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	r := &reporter{factory: s.factory, client: c, now: time.Now()}
	if len(args) == 1 {
		report, err := r.one(ctx, namespace, args[0])
		if err != nil {
			return err
		}
		return s.printOne(report, r.now)
	}
	if s.allNamespaces {
		namespace = ""
	}
	reports, err := r.all(ctx, namespace)
	if err != nil {
		return err
	}
	return s.printAll(reports, namespace, r.now)
}

// wide says whether more columns are asked for; human, whether tables are.
func (s *status) wide() bool { return *s.print.OutputFormat == "wide" }
func (s *status) human() bool {
	return s.wide() || *s.print.OutputFormat == "" && *s.print.TemplatePrinterFlags.TemplateArgument == ""
}

func (s *status) printAll(reports []leaseReport, namespace string, now time.Time) error {
	switch {
	case *s.print.OutputFormat == "name":
		for i := range reports {
			if _, err := fmt.Fprintln(s.Out, "fencedlease.fencedlease.io/"+reports[i].Name); err != nil {
				return err
			}
		}
		return nil
	case !s.human():
		return s.printStructure(struct {
			metav1.TypeMeta `json:",inline"`

			Items []leaseReport `json:"items"`
		}{reportType("LeaseStatusList"), reports})
	case len(reports) == 0 && s.allNamespaces:
		_, err := fmt.Fprintln(s.ErrOut, "No FencedLeases found.")
		return err
	case len(reports) == 0:
		_, err := fmt.Fprintf(s.ErrOut, "No FencedLeases found in namespace %s.\n", namespace)
		return err
	}
	return s.table(leaseTable(reports, s.allNamespaces, now))
}

func (s *status) printOne(report *leaseReport, now time.Time) error {
	switch {
	case *s.print.OutputFormat == "name":
		for _, object := range report.Objects {
			if _, err := fmt.Fprintln(s.Out, nameOf(object.groupKind, object.Name)); err != nil {
				return err
			}
		}
		return s.notes(report)
	case !s.human():
		return s.printStructure(report)
	}
	if err := describe(s.Out, report, now); err != nil {
		return err
	}
	if err := s.section("Guarded objects", len(report.Objects), objectTable(report.Objects)); err != nil {
		return err
	}
	if len(report.Events) > 0 {
		if err := s.section("Events", len(report.Events), eventTable(report.Events, now)); err != nil {
			return err
		}
	}
	return s.notes(report)
}

// notes names what could not be looked at.
func (s *status) notes(report *leaseReport) error {
	for _, u := range report.Unlisted {
		if _, err := fmt.Fprintf(s.ErrOut, "Note: not looked at: %s: %s\n", u.Resource, u.Reason); err != nil {
			return err
		}
	}
	return nil
}

// section prints a table with a headline, or that there is nothing in it.
func (s *status) section(headline string, rows int, table *metav1.Table) error {
	if rows == 0 {
		_, err := fmt.Fprintf(s.Out, "\n%s: none\n", headline)
		return err
	}
	if _, err := fmt.Fprintf(s.Out, "\n%s:\n", headline); err != nil {
		return err
	}
	return s.table(table)
}

func (s *status) table(table *metav1.Table) error {
	return printers.NewTablePrinter(printers.PrintOptions{Wide: s.wide(), NoHeaders: s.noHeaders}).PrintObj(table, s.Out)
}

// printStructure prints a report in the format that -o names.
func (s *status) printStructure(report any) error {
	printer, err := s.print.ToPrinter()
	if err != nil {
		return err
	}
	data, err := json.Marshal(report)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, object); err != nil {
		return err
	}
	return printer.PrintObj(object, s.Out)
}

// reportType is the type of what -o json prints: a version of its own, since no
// server has it.
func reportType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "cli.fencedlease.io/v1", Kind: kind}
}

// unknown and none are what a table says of what is not known, and of what is not
// there.
const (
	unknown = "<unknown>"
	none    = "<none>"
)

func humanDuration(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func tokenOrNone(token int64) string {
	if token == 0 {
		return none
	}
	return strconv.FormatInt(token, 10)
}

// renewed says how long ago the Lease was renewed.
func (report *leaseReport) renewed(now time.Time) string {
	if report.RenewTime == nil {
		return unknown
	}
	return ago(now, report.RenewTime.Time)
}

// column is one of a table; wide ones are shown with -o wide only.
func column(name string, wide bool) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{Name: name, Type: "string"}
	if wide {
		c.Priority = 1
	}
	return c
}

func leaseTable(reports []leaseReport, namespaces bool, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name", false), column("Holder", false), column("Token", false), column("Ready", false),
		column("Renewed", false), column("Age", false),
		column("Lease", true), column("State", true), column("Writer", true), column("Enforcement", true), column("Message", true),
	}}
	if namespaces {
		table.ColumnDefinitions = append([]metav1.TableColumnDefinition{column("Namespace", false)}, table.ColumnDefinitions...)
	}
	for i := range reports {
		r := &reports[i]
		cells := []any{
			r.Name, orNone(r.Holder), tokenOrNone(r.Token), string(r.Ready), r.renewed(now), ago(now, r.Created.Time),
			r.LeaseName, string(r.LeaseState), orNone(r.Writer), string(r.Enforcement), r.Message,
		}
		if namespaces {
			cells = append([]any{r.Namespace}, cells...)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return table
}

func objectTable(objects []objectReport) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Object", false), column("Mark", false), column("State", false), column("Bypass", true),
	}}
	for _, o := range objects {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{nameOf(o.groupKind, o.Name), tokenOrNone(o.Mark), string(o.State), orNone(o.Bypass)}})
	}
	return table
}

func eventTable(events []eventReport, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Last seen", false), column("Reason", false), column("Object", false), column("Message", false),
	}}
	for _, e := range events {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{ago(now, e.Time.Time), e.Reason, e.Object, e.Message}})
	}
	return table
}

// describe prints a FencedLease, field by field.
func describe(to io.Writer, r *leaseReport, now time.Time) error {
	w := printers.GetNewTabWriter(to)
	field := func(name, format string, values ...any) {
		if name != "" {
			name += ":"
		}
		_, _ = fmt.Fprintf(w, name+"\t"+format+"\n", values...) // Flush tells
	}
	field("FencedLease", "%s (namespace %s)", r.Name, r.Namespace)
	field("Lease", "%s, %s", r.LeaseName, r.leaseInWords(now))
	field("Holder", "%s", orNone(bounded.String(r.Holder, 256)))
	if r.Writer != "" {
		field("Writer", "%s", bounded.String(r.Writer, 256))
	}
	field("Token", "%s", tokenOrNone(r.Token))
	if r.TokenPending {
		field("", "the holder gets its own with its next renewal")
	}
	if r.Holder != "" && r.AcquireTime != nil {
		field("Acquired", "%s ago", ago(now, r.AcquireTime.Time))
	}
	if r.RenewTime != nil {
		field("Renewed", "%s ago", r.renewed(now))
	}
	ready := string(r.Ready)
	if r.Ready != metav1.ConditionTrue {
		ready += ": " + r.Message
	}
	field("Ready", "%s", ready)
	field("Enforcement", "%s", r.Enforcement)
	field("Age", "%s", ago(now, r.Created.Time))
	return w.Flush()
}

// leaseInWords is how the Lease stands, with what follows from it.
func (report *leaseReport) leaseInWords(now time.Time) string {
	switch report.LeaseState {
	case leaseHeld:
		if report.RenewTime == nil || report.LeaseDurationSeconds == 0 {
			return "held"
		}
		end := report.RenewTime.Add(time.Duration(report.LeaseDurationSeconds) * time.Second)
		return "held for another " + humanDuration(end.Sub(now)) + " unless renewed"
	case leaseExpired:
		end := report.RenewTime.Add(time.Duration(report.LeaseDurationSeconds) * time.Second)
		return "expired " + ago(now, end) + " ago: anybody may take it, and until then its holder's token stays current"
	case leaseFree:
		return "free: nobody holds it"
	case leaseMissing:
		return "which does not exist, or is not fenced"
	default:
		return "which could not be read"
	}
}
