// SPDX-License-Identifier: Apache-2.0

package helmrepo

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/hub/source/fault"
)

// errFlow says that what is looked for is in flow style, which is not read line by line.
var errFlow = errors.New("flow style")

// kept reads and keeps the beginning of what it reads, so that an index that turns out
// to be in flow style can be read as a whole.
type kept struct {
	r    io.Reader
	text bytes.Buffer
	more bool // there was more than is kept
}

func (k *kept) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	if room := maxFlowBytes - k.text.Len(); n > room {
		k.more = true
		k.text.Write(p[:room])
	} else {
		k.text.Write(p[:n])
	}
	return n, err
}

// scanFlow reads an index as a whole. All of it is in memory as a tree, some twenty
// times its size, so that it may not be as large as one that is read line by line.
func (k *kept) scanFlow(chart string, each func(entry) bool) (isIndex bool, skipped error, err error) {
	if _, err := io.Copy(io.Discard, io.LimitReader(k, int64(maxFlowBytes-k.text.Len())+1)); err != nil {
		return false, nil, err
	}
	if k.more {
		return false, nil, fault.Failf(fault.ClassTooLarge, "the index is written in flow style and has more than %d MiB: only in block style or as JSON it may have more", maxFlowBytes>>20)
	}
	var whole struct {
		Entries *map[string]yaml.Node `yaml:"entries"`
	}
	if err := yaml.Unmarshal(k.text.Bytes(), &whole); err != nil {
		return false, nil, fault.Failf(fault.ClassInvalid, "the index is not YAML: %s", fault.Clean(err.Error()))
	}
	if whole.Entries == nil {
		return false, nil, nil
	}
	versions, ok := (*whole.Entries)[chart]
	if !ok || chart == nobody {
		return true, nil, nil
	}
	if versions.Kind != yaml.SequenceNode {
		return true, fault.Failf(fault.ClassInvalid, "the versions of %s are no list", fault.Clean(chart)), nil
	}
	for _, item := range versions.Content {
		var one entry
		if err := item.Decode(&one); err != nil {
			skipped = err
			continue
		}
		if !each(one) {
			break
		}
	}
	return true, skipped, nil
}
