// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/source/snapshot"
)

// kindAuto: the path decides what kind of content it has.
const kindAuto = "auto"

// static is the hash over what a job is made of, without what it reads of the world:
// "sha256:<hex>". The version of the renderer is none of it: a new hub renders nothing
// again. Nor is what only makes a render fail or succeed.
//
// Fields that are unset leave no trace, so that a new one changes no hash of old.
func (r *Renderer) static(job *Job) (string, error) {
	digest, err := job.Snapshot.InputDigest(job.Content.Content.Path)
	if err != nil {
		return "", err
	}
	if digest == snapshot.AbsentDigest {
		return "", fmt.Errorf("%w: %s", snapshot.ErrPathNotFound, job.Content.Content.Path)
	}
	kind := kindAuto
	in := staticInputs{Pin: job.Content.Pin, Hooks: job.Content.Hooks}
	switch c := &job.Content.Content; {
	case c.Helm != nil:
		kind = content.Helm
		in.Helm = &staticHelm{
			ReleaseName: c.Helm.ReleaseName, ValuesFiles: c.Helm.ValuesFiles,
			SkipCRDs: c.Helm.CRDs == v1alpha1.CRDsSkip, SkipSchema: c.Helm.SkipSchemaValidation,
		}
	case c.Kustomize != nil:
		kind = content.Kustomize
	case c.Manifests != nil:
		kind = content.Manifests
	}
	for _, values := range job.Content.Values {
		in.Values = append(in.Values, staticText{Text: r.hidden(values.Text, values.Secret), At: values.TargetPath})
	}
	for _, m := range job.Content.Mutations {
		one := staticMutation{If: m.If, Type: m.Type, Target: m.Target, File: m.File}
		for _, body := range m.Bodies {
			one.Bodies = append(one.Bodies, r.hidden(body, m.Secret))
		}
		in.Mutations = append(in.Mutations, one)
	}
	sum := sha256.New()
	for _, field := range [][2]string{{"path", digest}, {"content", kind}, {"namespace", job.Content.Namespace}} {
		fmt.Fprintf(sum, "%s %q\n", field[0], field[1])
	}
	text, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	if string(text) != "{}" {
		fmt.Fprintf(sum, "more %s\n", text)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// hidden is a text as the hash takes it. The hash stands in a status that more people
// may read than the Secret, so of a Secret's text it takes a keyed MAC.
func (r *Renderer) hidden(text string, secret bool) string {
	if !secret {
		return text
	}
	mac := hmac.New(sha256.New, r.macKey)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

type staticInputs struct {
	Helm      *staticHelm      `json:"helm,omitempty"`
	Values    []staticText     `json:"values,omitempty"`
	Mutations []staticMutation `json:"mutations,omitempty"`
	Hooks     []content.Hook   `json:"hooks,omitempty"`
	Pin       bool             `json:"pin,omitempty"`
}

type staticHelm struct {
	ReleaseName string   `json:"releaseName,omitempty"`
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	SkipCRDs    bool     `json:"skipCRDs,omitempty"`
	SkipSchema  bool     `json:"skipSchema,omitempty"`
}

type staticText struct {
	Text string `json:"text"`
	At   string `json:"at,omitempty"`
}

type staticMutation struct {
	If     string                   `json:"if,omitempty"`
	Type   v1alpha1.MutationType    `json:"type"`
	Target *v1alpha1.MutationTarget `json:"target,omitempty"`
	Bodies []string                 `json:"bodies,omitempty"`
	File   string                   `json:"file,omitempty"`
}

// InputsHash is "sha256:<hex>" over what a render is made of: all of the job, and of
// the world the facts that an earlier render read. As long as it is unchanged, a
// Release keeps the render that it has.
func (r *Renderer) InputsHash(ctx context.Context, job Job, reads []string) (string, error) {
	static, err := r.static(&job)
	if err != nil {
		return "", sourceFailed(err)
	}
	return inputsHash(ctx, &job, static, reads)
}

func inputsHash(ctx context.Context, job *Job, static string, reads []string) (string, error) {
	if len(reads) == 0 {
		return static, nil
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "static %s\n", static)
	for _, name := range reads {
		value, there, err := job.value(ctx, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "read %q %t %q\n", name, there, value)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// value of a fact for this job.
func (j *Job) value(ctx context.Context, name string) (value string, there bool, err error) {
	if place, ok := strings.CutPrefix(name, facts.Path); ok {
		value, err = j.Snapshot.InputDigest(place)
		return value, true, sourceFailed(err)
	}
	if value, there = j.Content.World.Value(name); there {
		return value, true, nil
	}
	if name == facts.Charts && j.Charts != nil {
		charts, err := j.Charts.Charts(ctx, j.Content.Content.Path)
		if err != nil {
			return "", false, err
		}
		value, err = charts.InputDigest("")
		return value, true, sourceFailed(err)
	}
	if reference, ok := strings.CutPrefix(name, facts.Image); ok && j.Images != nil {
		value, err = j.Images.Digest(ctx, reference)
		return value, true, err
	}
	return "", false, nil
}
