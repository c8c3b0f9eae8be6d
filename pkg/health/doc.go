// SPDX-License-Identifier: Apache-2.0

// Package health says how healthy a live object is: by rules that users wrote, else by
// built-in ones for well-known kinds, else by the conventions that most controllers
// keep to. It is the judgement in the observe step, a pure function of the object; what
// becomes of it over time is pkg/engine's.
package health
