//go:build nopython

package sandbox

const hasInterpreter = false

var (
	compressedCode, compressedImage []byte
	interpreterSums                 string
)
