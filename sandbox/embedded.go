//go:build !nopython

package sandbox

import _ "embed"

const hasInterpreter = true

var (
	//go:embed python/code.wasm.zst
	compressedCode []byte
	//go:embed python/memory.img.zst
	compressedImage []byte
	//go:embed python/SHA256SUMS
	interpreterSums string
)
