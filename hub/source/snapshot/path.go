// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"path"
	"strings"
)

// Entry is one file below a path. Name is the path by which it was reached.
type Entry struct {
	Name       string
	Executable bool
	Content
	// Submodule is the commit of a submodule in this place; there is no content.
	Submodule string
}

// CleanPath brings a path of a Release to the form used here: "" is the whole
// tree. It refuses what leads out of it.
func CleanPath(text string) (string, error) {
	if strings.HasPrefix(text, "/") || strings.ContainsAny(text, "\\\x00") {
		return "", fmt.Errorf("%w: %q", ErrPath, text)
	}
	clean := path.Clean(text)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("%w: %q", ErrPath, text)
	}
	if clean == "." {
		return "", nil
	}
	return clean, nil
}

// Walk gives all files below a path, or the file that it is, in the order of
// their names. Links are followed; a file is named by the way it was reached.
func (s *Snapshot) Walk(text string, each func(Entry) error) error {
	clean, err := CleanPath(text)
	if err != nil {
		return err
	}
	real, err := s.resolve(clean, clean, 0)
	if err != nil {
		return err
	}
	w := &walk{s: s, each: each, fault: func(_ string, err error) error { return err }, open: map[string]bool{}}
	return w.visit(clean, real)
}

type walk struct {
	s     *Snapshot
	each  func(Entry) error
	fault func(name string, err error) error // a link that cannot be followed
	open  map[string]bool                    // folders that are being walked: a link into one goes in circles
	files int
	bytes int64
}

func (w *walk) visit(name, real string) error {
	if n := w.s.nodes[real]; n != nil {
		if w.files++; w.files > MaxFiles {
			return fmt.Errorf("%w: more than %d files, at %s", ErrTooLarge, MaxFiles, name)
		}
		entry := Entry{Name: name, Executable: n.Executable, Submodule: n.Submodule}
		if n.Content != nil {
			entry.Content = *n.Content
		}
		if w.bytes += entry.Size; w.bytes > MaxBytes {
			return fmt.Errorf("%w: more than %d MiB, at %s", ErrTooLarge, MaxBytes>>20, name)
		}
		return w.each(entry)
	}
	if w.open[real] {
		return w.fault(name, fmt.Errorf("%w: %s: it leads to a folder that it is in", ErrLink, name))
	}
	w.open[real] = true
	defer delete(w.open, real)
	for _, child := range w.s.children[real] {
		childName, childReal := join(name, child), join(real, child)
		if n := w.s.nodes[childReal]; n != nil && n.Link != "" {
			target, err := w.s.resolve(childReal, childName, 0)
			if err != nil {
				if err = w.fault(childName, err); err != nil {
					return err
				}
				continue
			}
			childReal = target
		}
		if err := w.visit(childName, childReal); err != nil {
			return err
		}
	}
	return nil
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// resolve follows the links of a clean path, folder by folder. shown is the path
// that errors name.
func (s *Snapshot) resolve(clean, shown string, hops int) (string, error) {
	at := ""
	rest := strings.Split(clean, "/")
	if clean == "" {
		rest = nil
	}
	for i, name := range rest {
		next := join(at, name)
		n := s.nodes[next]
		switch {
		case n == nil && !s.isFolder(next):
			if hops > 0 {
				return "", fmt.Errorf("%w: %s: it leads to %s, which does not exist", ErrLink, shown, next)
			}
			return "", fmt.Errorf("%w: %s", ErrPathNotFound, shown)
		case n != nil && n.Submodule != "" && i < len(rest)-1:
			return "", fmt.Errorf("%w: %s: %s is a submodule, whose content is not fetched", ErrPathNotFound, shown, next)
		case n != nil && n.Link == "" && i < len(rest)-1:
			return "", fmt.Errorf("%w: %s: %s is a file", ErrPathNotFound, shown, next)
		case n == nil || n.Link == "":
			at = next
			continue
		}
		if hops++; hops > maxHops {
			return "", fmt.Errorf("%w: %s: it goes in circles", ErrLink, shown)
		}
		if strings.HasPrefix(n.Link, "/") || strings.ContainsRune(n.Link, '\\') {
			return "", fmt.Errorf("%w: %s: it leaves the repository", ErrLink, shown)
		}
		target := path.Clean(join(at, n.Link))
		if target == ".." || strings.HasPrefix(target, "../") {
			return "", fmt.Errorf("%w: %s: it leaves the repository", ErrLink, shown)
		}
		if target == "." {
			target = ""
		}
		// What is left of the path stands below the target.
		for _, more := range rest[i+1:] {
			target = join(target, more)
		}
		return s.resolve(target, shown, hops)
	}
	return at, nil
}
