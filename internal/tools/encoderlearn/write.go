package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// weights encodes the model in the format of [index.ReadEncoder]. Each number is rounded to one of 255 values at
// equal distances. The distance is the same for all rows.
func (m *model) weights(names []string) []byte {
	var square float64
	for _, x := range m.rows {
		square += float64(x) * float64(x)
	}
	step := 5 * math.Sqrt(square/float64(len(m.rows))) / 127
	text := strings.Join(names, "\n")
	out := []byte("encoder1")
	for _, n := range []int{dims, pieceRows, len(names), len(text)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = append(out, text...)
	for _, x := range m.rows {
		out = append(out, byte(int8(max(-127, min(127, math.Round(float64(x)/step))))))
	}
	fmt.Printf("%d words, %d bytes\n", len(names), len(out))
	return out
}
