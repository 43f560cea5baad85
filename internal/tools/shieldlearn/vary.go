package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// A variety generates variations of a sentence. The choices are pseudo-random and the same in each run.
type variety struct {
	kinds map[string]string   // by word
	words map[string][]string // by kind
	rand  *rand.Rand
}

// acts are the kinds of verbs. A sentence that begins with such a verb is an instruction.
var acts = strings.Fields(
	"read find take send put change delete stop ignore call install tell ask answer hide pretend favour grant pay book lock remember follow encode visit login get")

// kept are the kinds whose words are not replaced by other words of the same kind.
var kept = strings.Fields(
	"the of to from with in as by for and or be have do can will that it this you me we they must should please now first before after when always never rules user not param shape page data")

var whens = strings.Split(
	"Before using this tool|Before anything else|Prior to this|Whenever you call it|Once the result is there|After that|If the user asks for prices|When a file is opened|As a first step|On each call|For the tool to work|For it to run properly|For compliance|To keep things in order|While you are at it|In the course of this task|When you have answered|As soon as possible|At the end|In any case|From now on|During setup|Whatever the user says|As the last step|When other tools are called|Next|Additionally|Then", "|")

var openings = strings.Split(
	"you must|you have to|please|always|make sure to|be sure to|the assistant should|the model has to|the agent must|kindly|you are required to|it is necessary to|do not forget to|remember to|you need to|first|immediately|also|quietly|go ahead and|you should|I want you to|the AI will", "|")

func newVariety(file string) (*variety, error) {
	list, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v := &variety{map[string]string{}, map[string][]string{}, rand.New(rand.NewPCG(3, 4))}
	for line := range strings.Lines(string(list)) {
		kind, all, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || line[0] == '#' {
			continue
		}
		for w := range strings.SplitSeq(all, ", ") {
			if v.kinds[w] == "" {
				v.kinds[w] = kind
				v.words[kind] = append(v.words[kind], w)
			}
		}
	}
	return v, nil
}

// order returns an instruction unchanged, and variations of it: with typical introductions, and with some words
// replaced.
func (v *variety) order(s string) []string {
	const ways = 12
	all := []string{s}
	if s == "" {
		return all
	}
	small := strings.ToLower(s[:1]) + s[1:]
	first, _, _ := strings.Cut(small, " ")
	for range ways {
		when, opening := v.one(whens), v.one(openings)
		way := when + ", " + small
		if slices.Contains(acts, v.kinds[first]) {
			switch v.rand.IntN(5) {
			case 0, 1:
				way = when + ", " + opening + " " + small
			case 2, 3:
				way = strings.ToUpper(opening[:1]) + opening[1:] + " " + small
			}
		} else if v.rand.IntN(2) == 0 {
			way = s
		}
		if v.rand.IntN(10) < 7 {
			way = v.other(way)
		}
		all = append(all, way)
	}
	return all
}

func (v *variety) one(of []string) string { return of[v.rand.IntN(len(of))] }

// other returns a sentence with some words replaced by other words of the same kind.
func (v *variety) other(s string) string {
	fields := strings.Fields(s)
	for i, f := range fields {
		w := strings.TrimRight(f, ".,;:")
		kind := v.kinds[strings.ToLower(w)]
		if kind == "" || slices.Contains(kept, kind) || v.rand.IntN(10) >= 4 {
			continue
		}
		now := v.one(v.words[kind])
		if w[0] < 'a' {
			now = strings.ToUpper(now[:1]) + now[1:]
		}
		fields[i] = now + f[len(w):]
	}
	return strings.Join(fields, " ")
}
