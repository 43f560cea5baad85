package llm

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// An openAIResponse is the response of /v1/embeddings.
type openAIResponse struct {
	Data []struct {
		Index     *int        `json:"index"`
		Embedding floatVector `json:"embedding"`
	} `json:"data"`
}

// orderedVectors returns the vectors in the order of the texts in the request. A vector without an index belongs to the
// text at the same position. It returns an error if there is not exactly one vector for each text.
func (a openAIResponse) orderedVectors(texts int) ([][]float32, error) {
	if len(a.Data) != texts {
		return nil, errVectorCount
	}
	all := make([][]float32, texts)
	for i, d := range a.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= texts || all[i] != nil || len(d.Embedding) == 0 {
			return nil, errVectorCount
		}
		all[i] = d.Embedding
	}
	return all, nil
}

// A floatVector is decoded from a JSON array of numbers, or from a Base64 string of little-endian 32-bit floats.
type floatVector []float32

func (f *floatVector) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return json.Unmarshal(raw, (*[]float32)(f))
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(packed)%4 != 0 {
		return errors.New("no vector in Base64")
	}
	all := make([]float32, 0, len(packed)/4)
	for ; len(packed) > 0; packed = packed[4:] {
		all = append(all, math.Float32frombits(binary.LittleEndian.Uint32(packed)))
	}
	*f = all
	return nil
}
