package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/scheme"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// object is one that a verb acts on, as it was read.
type object struct {
	*resource.Info

	keys fence.Object
}

// objects are those that the arguments name, as kubectl reads them: KIND/NAME…,
// KIND NAME…, or, with a selector, KIND,KIND…. What could be read is returned
// beside the error about the rest.
func (f *factory) objects(selector string, args ...string) ([]object, error) {
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(f.ConfigFlags).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().
		RequestChunksOf(pageSize).LabelSelectorParam(selector).
		ResourceTypeOrNameArgs(false, args...).
		ContinueOnError().Flatten().Do().Infos()
	found := make([]object, 0, len(infos))
	for _, info := range infos {
		o := object{Info: info}
		o.read(info.Object)
		found = append(found, o)
	}
	return found, err
}

// read takes the keys from the object as the server last gave it.
func (o *object) read(from runtime.Object) {
	if accessor, err := meta.Accessor(from); err == nil {
		o.keys = keys.OfGuarded(accessor.GetLabels(), accessor.GetAnnotations())
	}
}

// again reads the object again.
func (o *object) again() error {
	if err := o.Get(); err != nil {
		return err
	}
	o.read(o.Object)
	return nil
}

// guardedBy names the FencedLease of the label; "" for none.
func (o *object) guardedBy() string {
	if o.keys.GuardedBy == nil {
		return ""
	}
	return *o.keys.GuardedBy
}

// mark is the token that is stored on the object.
func (o *object) mark() fence.Token { return markOf(o.keys) }

// name is the object's, as kubectl prints it and takes it: configmap/state.
func (o *object) name() string {
	return nameOf(o.Mapping.GroupVersionKind.GroupKind().String(), o.Name)
}

// nameOf is Kind.group and a name, as kubectl prints and takes them.
func nameOf(groupKind, name string) string { return strings.ToLower(groupKind) + "/" + name }

// keysPatch is a write that changes nothing but our keys; a nil value takes a
// key away.
type keysPatch struct {
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
}

// patch writes our keys, and returns the object as it then is.
func (o *object) patch(p keysPatch, dryRun bool) (runtime.Object, error) {
	data, err := json.Marshal(map[string]keysPatch{"metadata": p})
	if err != nil {
		return nil, err
	}
	after, err := resource.NewHelper(o.Client, o.Mapping).DryRun(dryRun).WithFieldManager(fieldManager).
		Patch(o.Namespace, o.Name, types.MergePatchType, data, &metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(), err)
	}
	return after, nil
}

// present is the annotations of a write that presents a token to an object that
// may carry it already.
func present(token fence.Token) map[string]*string {
	value := token.String()
	nonce := value + "/" + strconv.FormatInt(time.Now().UnixNano(), 36)
	return map[string]*string{v1alpha1.AnnotationToken: &value, v1alpha1.AnnotationWrite: &nonce}
}

// noAnnotations takes all of our annotations away.
func noAnnotations() map[string]*string {
	return map[string]*string{
		v1alpha1.AnnotationToken: nil, v1alpha1.AnnotationWrite: nil, v1alpha1.AnnotationBypass: nil,
	}
}

// output is how a verb that writes objects prints them, and whether it writes.
type output struct {
	flags    *genericclioptions.PrintFlags
	strategy cmdutil.DryRunStrategy
	printers map[string]printers.ResourcePrinter // by what was done
}

func (out *output) addTo(cmd *cobra.Command) {
	out.flags = genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)
	out.flags.AddFlags(cmd)
	out.printers = map[string]printers.ResourcePrinter{}
	cmdutil.AddDryRunFlag(cmd)
	cmd.Flags().Lookup("dry-run").Usage = `Must be "none" or "server". "server" asks for the API server's verdict and stores nothing.`
}

// complete reads the flags.
func (out *output) complete(cmd *cobra.Command) (err error) {
	if out.strategy, err = cmdutil.GetDryRunStrategy(cmd); err != nil {
		return err
	}
	if out.strategy == cmdutil.DryRunClient {
		return errors.New("--dry-run=client would check nothing, since the rules are the API server's: use --dry-run=server")
	}
	return nil
}

func (out *output) dryRun() bool { return out.strategy == cmdutil.DryRunServer }

// print prints an object, and what was done with it.
func (out *output) print(f *factory, after runtime.Object, operation string) error {
	if format := *out.flags.OutputFormat; format != "" && format != "name" {
		operation = "" // the same printer for all, which puts --- between them
	}
	printer, ok := out.printers[operation]
	if !ok {
		var err error
		out.flags.NamePrintFlags.Operation = operation
		if printer, err = cmdutil.PrintFlagsWithDryRunStrategy(out.flags, out.strategy).ToPrinter(); err != nil {
			return err
		}
		out.printers[operation] = printer
	}
	return printer.PrintObj(after, f.Out)
}
