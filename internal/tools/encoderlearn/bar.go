package main

import (
	"bufio"
	_ "embed" // for barred.bin
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

//go:embed barred.bin
var barredKeys []byte

// barred returns the keys (see keyOf) of the texts that must not be used for training, as listed in barred.bin. data
// is the directory of the evaluation sets, or empty. If data is not empty, barred returns an error if a text of the
// evaluation sets has no key in barred.bin.
func barred(data string) (map[uint64]bool, error) {
	out := map[uint64]bool{}
	for i := 0; i+8 <= len(barredKeys); i += 8 {
		out[binary.BigEndian.Uint64(barredKeys[i:])] = true
	}
	if data == "" {
		return out, nil
	}
	keys, err := evaluated(data)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if !out[key] {
			return nil, fmt.Errorf("read the evaluation sets: a text has no key in barred.bin: create the file again with -bar")
		}
	}
	return out, nil
}

// evaluated returns the sorted keys of the texts in the evaluation sets of a directory. The texts are all questions
// and descriptions, and each of their sentences.
func evaluated(dir string) ([]uint64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("read the evaluation sets: no files in %s", dir)
	}
	var out []uint64
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var row any
			if err := json.Unmarshal(s.Bytes(), &row); err != nil {
				f.Close()
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			eachSaid(row, func(text string) { out = append(out, keysOf(text)...) })
		}
		f.Close()
		if s.Err() != nil {
			return nil, s.Err()
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// eachSaid calls yield with the text of each member "query" or "description" in a decoded JSON value, including
// nested values.
func eachSaid(row any, yield func(text string)) {
	switch row := row.(type) {
	case []any:
		for _, v := range row {
			eachSaid(v, yield)
		}
	case map[string]any:
		for name, v := range row {
			if text, ok := v.(string); ok && (name == "query" || name == "description") {
				yield(text)
			} else {
				eachSaid(v, yield)
			}
		}
	}
}

// keysOf returns the keys of a text and of each of its sentences. It omits texts that are too short for a key.
func keysOf(text string) []uint64 {
	var out []uint64
	for _, part := range append(sentences(text), text) {
		if key := keyOf(part); key != 0 {
			out = append(out, key)
		}
	}
	return out
}

func packed(keys []uint64) []byte {
	var out []byte
	for _, key := range keys {
		out = binary.BigEndian.AppendUint64(out, key)
	}
	return out
}

// unbarred removes the entries whose text must not be used for training. From the other entries, it removes the
// descriptions of parameters that must not be used.
func unbarred(all []entry, bars map[uint64]bool) []entry {
	is := func(text string) bool {
		return slices.ContainsFunc(keysOf(text), func(key uint64) bool { return bars[key] })
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return is(e.Text) })
	for i := range all {
		all[i].Hints = slices.DeleteFunc(all[i].Hints, is)
	}
	return all
}
