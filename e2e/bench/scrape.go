// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxScrape of one answer of /metrics.
const maxScrape = 32 << 20

// samples of one scrape, by name with labels as written.
type samples map[string]float64

// scrape reads a page of metrics.
func scrape(ctx context.Context, url string) (samples, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	out := samples{}
	lines := bufio.NewScanner(io.LimitReader(response.Body, maxScrape))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			out[line[:i]] = value
		}
	}
	return out, lines.Err()
}

// sum of all samples of a metric whose labels hold all of the given texts.
func (s samples) sum(name string, labels ...string) float64 {
	total := 0.0
next:
	for key, value := range s {
		rest, found := strings.CutPrefix(key, name)
		if !found || rest != "" && rest[0] != '{' {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue next
			}
		}
		total += value
	}
	return total
}
