// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"kumodo.io/convoy/hub/render/files"
)

// utf8Mark begins files of some editors; Helm takes it off.
var utf8Mark = []byte("\xef\xbb\xbf")

// source is a chart and where its files are.
type source struct {
	chart *chart.Chart
	// base is the folder that values files are relative to: the chart's, or the path
	// of its archive.
	base string
	// packed are the files of the archive by their names in the chart; nil of a
	// folder.
	packed map[string][]byte
}

// load reads the chart at a path of the tree.
func load(tree *files.Tree, at string) (source, error) {
	clean, err := files.Clean(at)
	if err != nil {
		return source{}, err
	}
	unpacker := &unpacker{}
	var list []*loader.BufferedFile
	found := source{base: clean}
	switch {
	case tree.IsDir(clean):
		list, err = readFolder(tree, clean, unpacker)
	case tree.IsFile(clean):
		var data []byte
		if data, err = tree.Read(clean); err == nil {
			list, err = unpacker.archive(clean, data)
		}
		found.packed = map[string][]byte{}
		for _, file := range list {
			found.packed[file.Name] = file.Data
		}
	default:
		if _, err = tree.Read(clean); err == nil {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		return source{}, err
	}
	if list, err = unpacker.subcharts(shownPath(clean), list, 0); err != nil {
		return source{}, err
	}
	if found.chart, err = loader.LoadFiles(list); err != nil {
		return source{}, fmt.Errorf("%s: %w: %s", shownPath(clean), ErrChart, cut(err.Error(), nil))
	}
	return found, check(found.chart)
}

// readFolder reads what .helmignore leaves of a folder.
func readFolder(tree *files.Tree, folder string, u *unpacker) ([]*loader.BufferedFile, error) {
	rules := ignore.Empty()
	text, err := tree.Read(path.Join(folder, ignore.HelmIgnore))
	if err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path.Join(folder, ignore.HelmIgnore), ErrChart, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rules.AddDefaults()
	filter := &filter{rules: rules, folders: map[string]bool{"": false}}
	var list []*loader.BufferedFile
	for _, name := range tree.List(folder) {
		relative := strings.TrimPrefix(strings.TrimPrefix(name, folder), "/")
		if filter.leavesOut(relative) {
			continue
		}
		data, err := tree.Read(name)
		if err != nil {
			return nil, err
		}
		if err := u.count(name, len(data)); err != nil {
			return nil, err
		}
		list = append(list, &loader.BufferedFile{Name: relative, Data: bytes.TrimPrefix(data, utf8Mark)})
	}
	return list, nil
}

// filter applies the rules of .helmignore as a walk over folders does: what is in a
// folder that is left out is left out.
type filter struct {
	rules   *ignore.Rules
	folders map[string]bool
}

func (f *filter) leavesOut(name string) bool {
	return f.folder(parent(name)) || f.rules.Ignore(name, entry{name: path.Base(name)})
}

func (f *filter) folder(name string) bool {
	out, known := f.folders[name]
	if !known {
		out = f.folder(parent(name)) || f.rules.Ignore(name, entry{name: path.Base(name), folder: true})
		f.folders[name] = out
	}
	return out
}

func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// entry is what the rules want to know of a file or folder.
type entry struct {
	name   string
	folder bool
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return 0 }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.folder }
func (e entry) Sys() any           { return nil }

func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// check refuses a chart that is no application, or lacks one that it depends on.
func check(c *chart.Chart) error {
	if kind := c.Metadata.Type; kind != "" && kind != "application" {
		return fmt.Errorf("chart %s: %w: it is a %s chart, which has nothing to deploy by itself", c.Name(), ErrChart, kind)
	}
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if wanted == nil {
			return fmt.Errorf("chart %s: %w: an empty entry among the dependencies of Chart.yaml", c.Name(), ErrChart)
		}
		there := false
		for _, have := range c.Dependencies() {
			there = there || have.Name() == wanted.Name
		}
		if !there {
			missing = append(missing, wanted.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("chart %s: %w: Chart.yaml names %s, and charts/ does not have it", c.Name(), ErrDependency, shownList(missing))
	}
	return nil
}

// shownList names the first few.
func shownList(names []string) string {
	if len(names) <= maxShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), len(names)-maxShown)
}
