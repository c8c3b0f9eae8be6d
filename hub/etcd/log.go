// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger makes etcd's warnings and errors part of the hub's log. What it says
// below that is about its own insides, and that its listeners are closed while it
// is closed (closing is true) is no error.
func zapLogger(log logr.Logger, closing *atomic.Bool) *zap.Logger {
	return zap.New(&core{LevelEnabler: zapcore.WarnLevel, log: log, closing: closing})
}

type core struct {
	zapcore.LevelEnabler
	log     logr.Logger
	closing *atomic.Bool
}

// With implements zapcore.Core.
func (c *core) With(f []zapcore.Field) zapcore.Core {
	return &core{LevelEnabler: c.LevelEnabler, log: c.log.WithValues(values(f)...), closing: c.closing}
}

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, f []zapcore.Field) error {
	if e.Level >= zapcore.ErrorLevel && !c.closing.Load() {
		c.log.Error(errors.New(e.Message), "embedded etcd", values(f)...) //nolint:err113 // etcd's own words, for the log alone
		return nil
	}
	c.log.V(1).Info("embedded etcd", append(values(f), "warning", e.Message)...)
	return nil
}

// Sync implements zapcore.Core.
func (*core) Sync() error { return nil }

func values(f []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for i := range f {
		f[i].AddTo(enc)
	}
	out := make([]any, 0, 2*len(enc.Fields))
	for k, v := range enc.Fields {
		out = append(out, k, v)
	}
	return out
}
