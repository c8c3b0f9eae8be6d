// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/fault"
)

// Names in a chart's folder. Charts of the older form have their dependencies in
// files of their own.
const (
	chartFile       = "Chart.yaml"
	lockFile        = "Chart.lock"
	oldRequirements = "requirements.yaml"
	oldLock         = "requirements.lock"
	chartsFolder    = "charts"
)

// dependency is one line of a chart's list, or of its lock.
type dependency struct {
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`
	Repository string `yaml:"repository"`
}

type metadata struct {
	Name         string       `yaml:"name"`
	Version      string       `yaml:"version"`
	Dependencies []dependency `yaml:"dependencies"`
}

func parse(name string, text []byte) (metadata, error) {
	var found metadata
	if len(text) > maxChartFileBytes {
		return found, fault.Failf(fault.ClassTooLarge, "%s has more than %d KiB", fault.Clean(name), maxChartFileBytes>>10)
	}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return found, fault.Failf(fault.ClassInvalid, "%s cannot be read: %s", fault.Clean(name), fault.Clean(err.Error()))
	}
	if len(found.Dependencies) > maxDependencies {
		return found, fault.Failf(fault.ClassTooLarge, "%s names more than %d dependencies", fault.Clean(name), maxDependencies)
	}
	return found, nil
}

// satisfies reports that a version is one that a range takes; an empty range takes all.
func satisfies(version, within string) bool {
	if within == "" || version == within {
		return true
	}
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	constraint, err := semver.NewConstraint(within)
	return err == nil && constraint.Check(parsed)
}

// inArchive reads the Chart.yaml of an archive, and all of the archive once, so that
// one which cannot be used is refused here and by its name.
func inArchive(ctx context.Context, data []byte) (metadata, error) {
	var found *metadata
	place := archive.InFolder("")
	entries := 0
	err := archive.Walk(ctx, bytes.NewReader(data), func(header *tar.Header, content io.Reader) error {
		if entries++; entries > archive.MaxFiles {
			return fault.Failf(fault.ClassTooLarge, "more than %d files", archive.MaxFiles)
		}
		name, err := archive.Clean(header.Name)
		if err != nil || name == "" {
			return err
		}
		if name, err = place(name); err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || strings.TrimPrefix(name, "/") != chartFile {
			return nil
		}
		if found != nil {
			return fault.Failf(fault.ClassInvalid, "%s: the name is there twice", chartFile)
		}
		text, err := io.ReadAll(io.LimitReader(content, maxChartFileBytes+1))
		if err != nil {
			return err
		}
		one, err := parse(chartFile, text)
		found = &one
		return err
	})
	if err != nil {
		return metadata{}, err
	}
	if found == nil {
		return metadata{}, fault.Failf(fault.ClassInvalid, "an archive without a %s", chartFile)
	}
	return *found, nil
}

// wanted is a dependency that is looked for: the version of the lock, where there is one.
type wanted struct {
	dependency
	locked bool
}

// lock gives each dependency the version that the lock has for it. A lock that does
// not fit is an error: somebody changed the one and forgot the other.
func lock(dependencies []dependency, lock *metadata) ([]wanted, error) {
	all := make([]wanted, 0, len(dependencies))
	for _, d := range dependencies {
		if lock == nil {
			all = append(all, wanted{dependency: d})
			continue
		}
		found := false
		for _, l := range lock.Dependencies {
			if l.Name == d.Name && l.Repository == d.Repository && satisfies(l.Version, d.Version) {
				all = append(all, wanted{dependency: dependency{Name: d.Name, Version: l.Version, Repository: d.Repository}, locked: true})
				found = true
				break
			}
		}
		if !found {
			return nil, fault.Failf(fault.ClassInvalid, "the lock has no %s %s of %s: it is out of step with the list of dependencies", fault.Clean(d.Name), fault.Clean(d.Version), fault.Clean(d.Repository))
		}
	}
	return all, nil
}

// folder of a chart that was found, below charts/.
func folderOf(name, version string) string {
	return path.Base(fmt.Sprintf("%s-%s", name, version))
}
