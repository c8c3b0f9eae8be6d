// SPDX-License-Identifier: Apache-2.0

// Package dependency brings in the charts that a chart names and does not have in
// its charts folder: a part of the first step of the flow source -> render -> store
// -> deliver -> apply -> observe -> report.
//
// A dependency comes from a chart repository (https), from an OCI registry, or from
// another folder of the same source (file://), never from elsewhere on a disk. It is
// asked for with the credentials that belong to its scheme, host and port, and with
// no others. Where the chart has a lock, the lock's versions are taken.
package dependency

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/snapshot"
)

const schemeFile = "file"

// Options of a collection.
type Options struct {
	// Snapshot that the chart is in, and the chart's folder in it.
	Snapshot *snapshot.Snapshot
	Path     string
	// Policy says what may be dialled.
	Policy address.Policy
	// Remotes are registries with the credentials that belong to them.
	Remotes []endpoint.Remote
}

// Chart is a dependency that was found.
type Chart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	// Digest: sha256:<hex> of the archive, of the manifest in a registry, or of the
	// folder in the source.
	Digest string `json:"digest"`
}

// collection is one chart whose dependencies are collected.
type collection struct {
	Options
	path  string
	files map[string][]byte // of the chart's folder, by their paths below it, as far as needed
	tree  *archive.Tree
}

// Collect puts what is missing into a tree, under the paths that it has in the
// source: PATH/charts/.... A path without a Chart.yaml, or that of an archive, has no
// dependencies.
func Collect(ctx context.Context, o Options, tree *archive.Tree) ([]Chart, error) {
	clean, err := snapshot.CleanPath(o.Path)
	if err != nil {
		return nil, invalid(err)
	}
	c := &collection{Options: o, path: clean, tree: tree}
	if c.files, err = c.load(clean, needed); err != nil {
		return nil, err
	}
	dependencies, err := c.list()
	if err != nil {
		return nil, err
	}
	var found []Chart
	for _, d := range dependencies {
		if err := checkName(d.dependency); err != nil {
			return nil, err
		}
		vendored, err := c.vendored(ctx, d)
		if err != nil {
			return nil, err
		}
		if vendored {
			continue
		}
		chart, err := c.bring(ctx, d)
		if err != nil {
			return nil, fault.Wrap(fmt.Sprintf("the dependency %s %s", fault.Clean(d.Name), fault.Clean(d.Version)), err)
		}
		found = append(found, chart)
	}
	return found, nil
}

// invalid gives errors of a snapshot, which name the path, a class.
func invalid(err error) error {
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	return &fault.Error{Class: fault.ClassInvalid, Err: err}
}

func checkName(d dependency) error {
	if d.Name == "" || d.Name != path.Base(d.Name) || strings.HasPrefix(d.Name, ".") || strings.ContainsAny(d.Name, "\\:@?#% \x00") {
		return fault.Failf(fault.ClassInvalid, "%q is no name of a chart", fault.Clean(d.Name))
	}
	return nil
}

// needed says which files of a chart's folder are read: what names its dependencies,
// and what is in its charts folder.
func needed(name string) bool {
	switch name {
	case chartFile, lockFile, oldRequirements, oldLock:
		return true
	}
	below, ok := strings.CutPrefix(name, chartsFolder+"/")
	if !ok {
		return false
	}
	folder, file, deeper := strings.Cut(below, "/")
	return deeper && file == chartFile || !deeper && strings.HasSuffix(folder, ".tgz")
}

// load reads files of a folder of the source.
func (c *collection) load(folder string, want func(name string) bool) (files map[string][]byte, err error) {
	stream, err := c.Snapshot.Tar(folder)
	if err != nil {
		return nil, invalid(err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	files = map[string][]byte{}
	in := tar.NewReader(stream)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, invalid(err)
		}
		name, below := header.Name, folder == ""
		if folder != "" {
			name, below = strings.CutPrefix(header.Name, folder+"/")
		}
		if !below || header.Typeflag != tar.TypeReg || !want(name) {
			continue
		}
		if files[name], err = io.ReadAll(in); err != nil {
			return nil, invalid(err)
		}
	}
}

// list gives the chart's dependencies, with the versions of its lock.
func (c *collection) list() ([]wanted, error) {
	text, ok := c.files[chartFile]
	if !ok {
		return nil, nil
	}
	chart, err := parse(chartFile, text)
	if err != nil {
		return nil, err
	}
	lockName := lockFile
	if old, ok := c.files[oldRequirements]; ok && len(chart.Dependencies) == 0 {
		if chart, err = parse(oldRequirements, old); err != nil {
			return nil, err
		}
		lockName = oldLock
	}
	var locks *metadata
	if text, ok := c.files[lockName]; ok {
		found, err := parse(lockName, text)
		if err != nil {
			return nil, err
		}
		locks = &found
	}
	return lock(chart.Dependencies, locks)
}

// vendored reports that the charts folder has the dependency.
func (c *collection) vendored(ctx context.Context, d wanted) (bool, error) {
	for name, data := range c.files {
		below, ok := strings.CutPrefix(name, chartsFolder+"/")
		if !ok {
			continue
		}
		var (
			found metadata
			err   error
		)
		if strings.HasSuffix(below, ".tgz") {
			if !strings.HasPrefix(below, d.Name+"-") {
				continue
			}
			found, err = inArchive(ctx, data)
		} else {
			found, err = parse(name, data)
		}
		if err != nil {
			return false, fault.Wrap(fault.Clean(name), err)
		}
		if found.Name == d.Name && satisfies(found.Version, d.Version) {
			return true, nil
		}
	}
	return false, nil
}

// bring gets one dependency.
func (c *collection) bring(ctx context.Context, d wanted) (Chart, error) {
	switch {
	case d.Repository == "":
		return Chart{}, fault.Failf(fault.ClassInvalid, "it is not in the charts folder, and no repository is named for it")
	case strings.HasPrefix(d.Repository, "@"), strings.HasPrefix(d.Repository, "alias:"):
		return Chart{}, fault.Failf(fault.ClassInvalid, "its repository is %s, a name that is known on somebody's computer only: write the URL", fault.Clean(d.Repository))
	case strings.HasPrefix(d.Repository, schemeFile+"://"):
		return c.local(d)
	}
	remote := c.remote(d)
	resolved, err := helmrepo.Resolve(ctx, remote, d.Name, d.Version)
	if err != nil {
		return Chart{}, err
	}
	data, digest, err := helmrepo.Archive(ctx, remote, resolved, maxArchiveBytes)
	if err != nil {
		return Chart{}, err
	}
	found, err := inArchive(ctx, data)
	if err != nil {
		return Chart{}, err
	}
	if found.Name != d.Name || !satisfies(found.Version, d.Version) {
		return Chart{}, fault.Failf(fault.ClassInvalid, "the repository gave %s, the dependency asks for %s", named(found.Name, found.Version), named(d.Name, d.Version))
	}
	name := path.Join(c.path, chartsFolder, folderOf(found.Name, found.Version)+".tgz")
	return Chart{Name: found.Name, Version: found.Version, Repository: d.Repository, Digest: digest}, c.tree.Add(name, false, data)
}

// named is a chart with its version, if it has one, for a message.
func named(name, version string) string {
	return strings.TrimSpace(fault.Clean(name) + " " + fault.Clean(version))
}

// remote is the repository of a dependency, with what belongs to it.
func (c *collection) remote(d wanted) endpoint.Remote {
	remote := endpoint.Remote{URL: d.Repository, Policy: c.Policy}
	target, err := url.Parse(d.Repository)
	if err != nil {
		return remote // what uses it says what is wrong with the URL
	}
	for _, candidate := range c.Remotes {
		if own, err := url.Parse(candidate.URL); err == nil && own.Host != "" && endpoint.Origin(own) == endpoint.Origin(target) {
			remote.Auth, remote.CA, remote.PassCredentials = candidate.Auth, candidate.CA, candidate.PassCredentials
			return remote
		}
	}
	return remote
}

// local takes a folder of the same source.
func (c *collection) local(d wanted) (Chart, error) {
	relative := strings.TrimPrefix(d.Repository, schemeFile+"://")
	clean, err := snapshot.CleanPath(path.Join(c.path, relative))
	if err != nil || path.IsAbs(relative) {
		return Chart{}, fault.Failf(fault.ClassInvalid, "%s leads out of the source", fault.Clean(d.Repository))
	}
	files, err := c.load(clean, func(string) bool { return true })
	if err != nil {
		return Chart{}, err
	}
	text, ok := files[chartFile]
	if !ok {
		return Chart{}, fault.Failf(fault.ClassNotFound, "%s has no %s", fault.Clean(clean), chartFile)
	}
	found, err := parse(path.Join(clean, chartFile), text)
	if err != nil {
		return Chart{}, err
	}
	if found.Name != d.Name || !satisfies(found.Version, d.Version) {
		return Chart{}, fault.Failf(fault.ClassInvalid, "the chart at %s is %s, the dependency asks for %s", fault.Clean(clean), named(found.Name, found.Version), named(d.Name, d.Version))
	}
	if found.Version == "" || found.Version != path.Base(found.Version) {
		return Chart{}, fault.Failf(fault.ClassInvalid, "%s has no proper version", fault.Clean(clean))
	}
	below := path.Join(c.path, chartsFolder, folderOf(found.Name, found.Version))
	// Below itself a chart would hold itself.
	if clean == "" || c.path == clean || strings.HasPrefix(c.path+"/", clean+"/") {
		return Chart{}, fault.Failf(fault.ClassInvalid, "%s holds the chart that wants it", fault.Clean(d.Repository))
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := sha256.Sum256(files[name])
		fmt.Fprintf(sum, "%q %x\n", name, content)
		if err := c.tree.Add(path.Join(below, name), false, files[name]); err != nil {
			return Chart{}, err
		}
	}
	return Chart{Name: found.Name, Version: found.Version, Repository: d.Repository, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}
