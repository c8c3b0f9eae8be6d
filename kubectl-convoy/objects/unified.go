// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"
	"strings"
)

// maxEdits of one object that are looked for; beyond it all lines between the first and
// the last difference are shown as replaced.
const maxEdits = 1000

// edit is one line: kept (' '), removed ('-') or added ('+').
type edit struct {
	kind byte
	line string
}

// unified gives the hunks of diff -u, or nothing when the lines are the same.
func unified(before, after []string) string {
	all := edits(before, after)
	var out strings.Builder
	left, right := 1, 1 // the lines that come next
	for i := 0; i < len(all); {
		if all[i].kind == ' ' {
			i, left, right = i+1, left+1, right+1
			continue
		}
		start := max(0, i-contextLines)
		end := hunkEnd(all, i)
		hunk(&out, all[start:end], left-(i-start), right-(i-start))
		for ; i < end; i++ {
			if all[i].kind != '+' {
				left++
			}
			if all[i].kind != '-' {
				right++
			}
		}
	}
	return out.String()
}

// hunkEnd is after the context of the last change that is near enough.
func hunkEnd(all []edit, from int) int {
	end := from
	for i := from; i < len(all) && i < end+2*contextLines+1; i++ {
		if all[i].kind != ' ' {
			end = i
		}
	}
	return min(len(all), end+1+contextLines)
}

func hunk(out *strings.Builder, part []edit, left, right int) {
	var lefts, rights int
	for _, e := range part {
		if e.kind != '+' {
			lefts++
		}
		if e.kind != '-' {
			rights++
		}
	}
	// A side without lines is named by the line before it.
	if lefts == 0 {
		left--
	}
	if rights == 0 {
		right--
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", left, lefts, right, rights)
	for _, e := range part {
		out.WriteByte(e.kind)
		out.WriteString(e.line)
		out.WriteByte('\n')
	}
}

// edits turn before into after, with as few as can be found.
func edits(before, after []string) []edit {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	all := make([]edit, 0, len(after)+len(before))
	for _, line := range before[:head] {
		all = append(all, edit{' ', line})
	}
	all = append(all, shortest(before[head:len(before)-tail], after[head:len(after)-tail])...)
	for _, line := range before[len(before)-tail:] {
		all = append(all, edit{' ', line})
	}
	return all
}

// shortest is the greedy algorithm of Myers: for each diagonal, furthest holds how far in
// before one comes with the edits made so far.
func shortest(before, after []string) []edit {
	limit := min(len(before)+len(after), maxEdits)
	furthest := make([]int, 2*limit+3)
	zero := limit + 1 // index of diagonal 0
	var trail [][]int // for each number of edits, diagonals -d-1 to d+1 before they are made
	for d := 0; d <= limit; d++ {
		trail = append(trail, slices.Clone(furthest[zero-d-1:zero+d+2]))
		for k := -d; k <= d; k += 2 {
			x := furthest[zero+k-1] + 1
			if k == -d || k != d && furthest[zero+k-1] < furthest[zero+k+1] {
				x = furthest[zero+k+1]
			}
			for x < len(before) && x-k < len(after) && before[x] == after[x-k] {
				x++
			}
			furthest[zero+k] = x
			if x >= len(before) && x-k >= len(after) {
				return walk(trail, before, after)
			}
		}
	}
	var all []edit
	for _, line := range before {
		all = append(all, edit{'-', line})
	}
	for _, line := range after {
		all = append(all, edit{'+', line})
	}
	return all
}

// walk goes back from the end along the trail.
func walk(trail [][]int, before, after []string) []edit {
	x, y := len(before), len(after)
	var back []edit
	for d := len(trail) - 1; d >= 0; d-- {
		furthest := func(k int) int { return trail[d][k+d+1] }
		k := x - y
		from := k - 1
		if k == -d || k != d && furthest(k-1) < furthest(k+1) {
			from = k + 1
		}
		fromX := furthest(from)
		fromY := fromX - from
		for x > max(0, fromX) && y > max(0, fromY) {
			x, y = x-1, y-1
			back = append(back, edit{' ', before[x]})
		}
		switch {
		case d == 0:
		case x == fromX:
			y--
			back = append(back, edit{'+', after[y]})
		default:
			x--
			back = append(back, edit{'-', before[x]})
		}
	}
	slices.Reverse(back)
	return back
}
