// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// formatKey holds the number of the format of all that lies under our prefix.
	formatKey = EtcdPrefix + "/format"
	// format that this hub writes. It grows when a hub before it would misread
	// what lies there; new fields are no reason.
	format = 1
)

// checkFormat refuses an etcd that a newer hub has written in a newer format, and
// writes the number into a new one.
func checkFormat(ctx context.Context, etcd *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, etcdDialTimeout)
	defer cancel()
	answer, err := etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(formatKey), "=", 0)).
		Then(clientv3.OpPut(formatKey, strconv.Itoa(format))).
		Else(clientv3.OpGet(formatKey)).
		Commit()
	if err != nil {
		return fmt.Errorf("read the format of etcd: %w", err)
	}
	if answer.Succeeded {
		return nil
	}
	text := string(answer.Responses[0].GetResponseRange().Kvs[0].Value)
	if found, err := strconv.Atoi(text); err != nil || found > format {
		return fmt.Errorf("%w: format %q, this hub knows %d", ErrFormat, text, format)
	}
	return nil
}

// OwnKeys are names under EtcdPrefix that a hub writes for itself when it starts.
func OwnKeys() []string { return []string{strings.TrimPrefix(formatKey, EtcdPrefix)} }
