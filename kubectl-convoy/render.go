// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
	"kumodo.io/convoy/kubectl-convoy/offline"
	"kumodo.io/convoy/pkg/manifest"
)

// Exit codes of render, which are those of kubectl diff.
const (
	exitDifferent = 1
	exitFailed    = 2
)

// defaultKubeVersion is that of the libraries which convoy is built with.
const defaultKubeVersion = "v1.37.2"

// Errors of render's command line.
var (
	errNoFile  = errors.New("give a file with the Release with -f")
	errKeyPair = errors.New("must be KEY=VALUE")
	errImage   = errors.New("must be REFERENCE=sha256:DIGEST")
	// errDifferent is no failure: it was asked for differences, and there are some.
	errDifferent = errors.New("the render differs")
)

// exitError is an error with the exit code that it ends the plugin with.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

type renderVerb struct {
	streams genericiooptions.IOStreams

	file, source, values, output, against string
	cluster                               []string
	images                                []string
	options                               offline.Options
}

func newRender(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &renderVerb{streams: streams}
	command := &cobra.Command{
		Use:   "render [NAME] -f FILE",
		Short: "Render a Release from a folder, without a hub",
		Long: `Render the Release of a file from a folder that stands in for its source, with the code
that the hub renders with, and without asking anybody: no hub, no cluster, no registry.
What the hub would know is given: the cluster's metadata, its versions, ConfigMaps and
Secrets. Of charts, dependencies have to be in charts/ already.

Secret values are not shown: <sealed> stands in their place.

With --diff-against, what differs from the objects of a file or folder is shown, and
the exit code is that of kubectl diff: 0 when nothing differs, 1 when something does,
more than 1 for an error. Without it, it is 0, or 2 for an error.`,
		Example: `  # What release.yaml renders to, from the repository that one is in
  kubectl convoy render -f release.yaml

  # ... for a cluster, with values of a Secret
  kubectl convoy render -f release.yaml --source . --cluster-name edge-1 \
    --cluster region=eu --values-from-dir ./secrets

  # ... and what a change would do
  kubectl convoy render -f release.yaml > before.yaml
  kubectl convoy render -f release.yaml --diff-against before.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			namespace, forced := metav1.NamespaceDefault, false
			if *flags.Namespace != "" {
				namespace, forced = *flags.Namespace, true
			}
			err := verb.run(name, namespace, forced)
			var coded *exitError
			if err != nil && !errors.As(err, &coded) {
				return &exitError{err, exitFailed}
			}
			return err
		},
	}
	// Of a hub's kubeconfig nothing is used here, so its flag --cluster means nothing.
	f := command.Flags()
	f.StringVarP(&verb.file, "filename", "f", "", "file with the Release; - is standard input")
	f.StringVar(&verb.source, "source", ".", "folder that stands in for the source; of a HelmRegistry the unpacked chart, or the folder it is in")
	f.StringVar(&verb.options.ClusterName, "cluster-name", "", "cluster.name; default: that of spec.clusterRef")
	f.StringArrayVar(&verb.cluster, "cluster", nil, "KEY=VALUE of the Cluster's metadata; may be given several times")
	f.StringVar(&verb.options.KubeVersion, "kube-version", defaultKubeVersion, "Kubernetes version that charts are told")
	f.StringSliceVar(&verb.options.APIVersions, "api-versions", nil, "GROUP/VERSION, or GROUP/VERSION/KIND, that charts are told beside the built-in ones")
	f.StringVar(&verb.values, "values-from-dir", "", "folder with manifests of the ConfigMaps and Secrets that the Release names")
	f.StringArrayVar(&verb.images, "image", nil, "REFERENCE=sha256:DIGEST for images.policy Pin; may be given several times")
	f.BoolVar(&verb.options.ImagesAsIs, "images-as-is", false, "leave the tags of images where the Release pins them")
	f.StringVarP(&verb.output, "output", "o", objects.YAML, "yaml, json or names")
	f.StringVar(&verb.against, "diff-against", "", "show what differs from the objects of this file or folder")
	return command
}

func (r *renderVerb) run(name, namespace string, forced bool) error {
	if r.file == "" {
		return errNoFile
	}
	if err := objects.Check(r.output); err != nil {
		return err
	}
	release, err := readRelease(r.streams.In, r.file, name, namespace, forced)
	if err != nil {
		return fmt.Errorf("reading the Release: %w", err)
	}
	corev1alpha1.SetReleaseDefaults(release)
	o := r.options
	o.Release, o.Source = release, r.source
	if o.Cluster, err = pairs("--cluster", r.cluster, errKeyPair); err != nil {
		return err
	}
	if o.Images, err = pairs("--image", r.images, errImage); err != nil {
		return err
	}
	if o.Given, err = r.given(release.Namespace); err != nil {
		return fmt.Errorf("reading --values-from-dir: %w", err)
	}
	result, err := offline.Render(o)
	if err != nil {
		return fmt.Errorf("rendering Release %s/%s: %w", release.Namespace, release.Name, err)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintln(r.streams.ErrOut, "warning:", warning)
	}
	return r.show(result.Set)
}

func (r *renderVerb) given(namespace string) (*offline.Given, error) {
	if r.values == "" {
		return offline.NewGiven(nil, namespace)
	}
	set, err := objects.Load(r.values, namespace)
	if err != nil {
		return nil, err
	}
	return offline.NewGiven(set, namespace)
}

// show prints the objects, or how they differ.
func (r *renderVerb) show(set *manifest.Set) error {
	masker := objects.NewMasker()
	list, err := masker.Mask(set)
	if err != nil {
		return err
	}
	if r.against == "" {
		return objects.Print(r.streams.Out, r.output, objects.Blank(list))
	}
	other, err := objects.Load(r.against, set.Namespace)
	if err != nil {
		return fmt.Errorf("reading --diff-against: %w", err)
	}
	before, err := masker.Mask(other)
	if err != nil {
		return fmt.Errorf("reading --diff-against: %w", err)
	}
	different, err := masker.Diff(r.streams.Out, set.Namespace, before, list)
	if err == nil && different {
		return &exitError{errDifferent, exitDifferent}
	}
	return err
}

// pairs reads what a flag was given.
func pairs(flag string, list []string, wrong error) (map[string]string, error) {
	out := make(map[string]string, len(list))
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s %q: %w", flag, text, wrong)
		}
		out[key] = value
	}
	return out, nil
}
