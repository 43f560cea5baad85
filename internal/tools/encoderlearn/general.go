package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// general contains vectors of English words that were trained on general texts (GloVe). The vectors have length 1.
type general struct {
	vectors map[string][]float32
	rank    map[string]int // for each word, the number of words that are more frequent
}

const (
	generalDims = 100
	// generalWords is the number of words that are read, most frequent first.
	generalWords = 100_000
)

// readGeneral reads word vectors from a JSON file with an object. The member "vectors" of the object has a member for
// each word, with the list of its numbers; the most frequent word is first.
func readGeneral(path string) (*general, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, data, ok := bytes.Cut(data, []byte(`"vectors":`))
	if !ok {
		return nil, fmt.Errorf("no vectors")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	g := &general{vectors: map[string][]float32{}, rank: map[string]int{}}
	for n := 0; d.More() && n < generalWords; n++ {
		word, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v []float32
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		name, _ := word.(string)
		if ws := index.EncoderWords(name); len(ws) != 1 || ws[0] != name || len(v) < generalDims {
			continue
		}
		v = v[:generalDims:generalDims]
		length := float32(math.Sqrt(float64(dot(v, v)))) + 1e-6
		for i := range v {
			v[i] /= length
		}
		g.vectors[name], g.rank[name] = v, len(g.rank)
	}
	return g, nil
}
