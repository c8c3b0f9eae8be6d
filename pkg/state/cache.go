// SPDX-License-Identifier: Apache-2.0

package state

import (
	"container/list"
	"sync"
)

// cache keeps the compressed bytes of small layers that were used last.
type cache struct {
	limit int

	mu    sync.Mutex
	size  int
	order *list.List // of cached, the last used first; guarded by mu
	at    map[string]*list.Element
}

type cached struct {
	digest  string
	content []byte
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), at: map[string]*list.Element{}}
}

func (c *cache) get(digest string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[digest]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	content, ok := e.Value.(cached)
	return content.content, ok
}

func (c *cache) put(digest string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[digest]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.at[digest] = c.order.PushFront(cached{digest: digest, content: content})
	c.size += len(content)
	for c.size > c.limit && c.order.Len() > 1 {
		c.dropLocked(c.order.Back())
	}
}

func (c *cache) drop(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[digest]; ok {
		c.dropLocked(e)
	}
}

func (c *cache) dropLocked(e *list.Element) {
	if old, ok := e.Value.(cached); ok {
		delete(c.at, old.digest)
		c.size -= len(old.content)
	}
	c.order.Remove(e)
}
