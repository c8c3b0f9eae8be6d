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

	"kumodo.io/convoy/kubectl-convoy/objects"
	"kumodo.io/convoy/kubectl-convoy/offline"
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
	// errTold: what is wrong was told already.
	errTold = errors.New("the render failed")
	// errDifferent is no failure: it was asked for differences, and there are some.
	errDifferent = errors.New("the render differs")
)

// exitError is an error with the exit code that it ends the plugin with.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

func newRender(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return newRenderWithin(offline.HubLimits, flags, streams)
}

func newRenderWithin(limits offline.Limits, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &renderJob{}
	command := &cobra.Command{
		Use:   "render [NAME] -f FILE",
		Short: "Render a Release from a folder, without a hub",
		Long: `Render the Release of a file from a folder that stands in for its source, with the code
that the hub renders with, and without asking anybody: no hub, no cluster, no registry.
What the hub would know is given: the cluster's metadata, its versions, ConfigMaps and
Secrets. Of charts, dependencies have to be in charts/ already.

Secret values are not shown: <sealed> stands in their place.

It is made in a process of its own under the hub's limits of time and memory; one that
the hub would break off for them is an error here too.

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
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				verb.Name = args[0]
			}
			verb.Namespace = metav1.NamespaceDefault
			if *flags.Namespace != "" {
				verb.Namespace, verb.Forced = *flags.Namespace, true
			}
			return withCode(verb.run(command.Context(), limits, streams))
		},
	}
	// Of a hub's kubeconfig nothing is used here, so its flag --cluster means nothing.
	f := command.Flags()
	f.StringVarP(&verb.File, "filename", "f", "", "file with the Release; - is standard input")
	f.StringVar(&verb.Source, "source", ".", "folder that stands in for the source; of a HelmRegistry the unpacked chart, or the folder it is in")
	f.StringVar(&verb.ClusterName, "cluster-name", "", "cluster.name; default: that of spec.clusterRef")
	f.StringArrayVar(&verb.Cluster, "cluster", nil, "KEY=VALUE of the Cluster's metadata; may be given several times")
	f.StringVar(&verb.KubeVersion, "kube-version", defaultKubeVersion, "Kubernetes version that charts are told")
	f.StringSliceVar(&verb.APIVersions, "api-versions", nil, "GROUP/VERSION, or GROUP/VERSION/KIND, that charts are told beside the built-in ones")
	f.StringVar(&verb.Values.Path, "values-from-dir", "", "folder with manifests of the ConfigMaps and Secrets that the Release names")
	f.StringArrayVar(&verb.Images, "image", nil, "REFERENCE=sha256:DIGEST for images.policy Pin; may be given several times")
	f.BoolVar(&verb.ImagesAsIs, "images-as-is", false, "leave the tags of images where the Release pins them")
	f.StringVarP(&verb.Output, "output", "o", objects.YAML, "yaml, json or names")
	f.StringVar(&verb.Against.Path, "diff-against", "", "show what differs from the objects of this file or folder")
	return command
}

// withCode gives an error of render its exit code.
func withCode(err error) error {
	var coded *exitError
	var ended *interruption
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.As(err, &ended):
		return &exitError{err, ended.code()}
	}
	return &exitError{err, exitFailed}
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
