package kernel

import "math"

// The ziggurat method (Marsaglia and Tsang, 2000): the area under a falling density
// is cut into 256 layers of equal area. A random point of a random layer lies under
// the density nearly always without looking at the density itself.

// ziggurat is one such cut. Its tables are computed by Exp and Log of this package,
// so that they are the same everywhere.
type ziggurat struct {
	// sure is, for each layer, how much of it lies under the density wholly,
	// as a fraction of 2**53.
	sure [256]uint64
	// scale turns 53 random bits into a place in the layer.
	scale [256]float64
	// height is the density at each layer's right edge; height[256] is its top.
	height [257]float64
}

const (
	exponentialTail = 7.697117470131487     // where the lowest layer's rectangle ends
	exponentialArea = 0.0039496598225815571 // of each layer
	normalTail      = 3.6541528853610088
	normalArea      = 0.00492867323399
)

var (
	exponentials = newZiggurat(exponentialTail, exponentialArea,
		func(x float64) float64 { return Exp(-x) },
		func(y float64) float64 { return -Log(y) })
	normals = newZiggurat(normalTail, normalArea,
		func(x float64) float64 { return Exp(-0.5 * float64(x*x)) },
		func(y float64) float64 { return math.Sqrt(-2 * Log(y)) })
)

// newZiggurat stacks the layers from the tail up. density falls from 1 at 0, and
// inverse is its inverse.
func newZiggurat(tail, area float64, density, inverse func(float64) float64) *ziggurat {
	z := new(ziggurat)
	var edge [257]float64 // right edges of the layers, from the widest; the last is 0
	edge[0] = area / density(tail)
	edge[1] = tail
	z.height[0], z.height[1] = 0, density(tail)
	for i := 2; i < 256; i++ {
		z.height[i] = z.height[i-1] + area/edge[i-1]
		edge[i] = inverse(z.height[i])
	}
	z.height[256] = 1
	for i := range 256 {
		z.scale[i] = edge[i] * 0x1p-53
		z.sure[i] = uint64(float64(edge[i+1] / edge[i] * 0x1p53))
	}
	return z
}

// Exp returns an exponential variate with mean 1.
func (s *Stream) Exp() float64 {
	u := s.Uint64()
	i := uint8(u)
	if u >>= 11; u < exponentials.sure[i] {
		return float64(float64(u) * exponentials.scale[i])
	}
	return s.rareExp(u, i)
}

// rareExp decides about the points that are not surely under the density.
func (s *Stream) rareExp(u uint64, i uint8) float64 {
	z, beyond := exponentials, 0.0
	for {
		x := float64(float64(u) * z.scale[i])
		switch {
		case u < z.sure[i]:
			return beyond + x
		case i == 0: // the tail of an exponential is that exponential, further right
			beyond += exponentialTail
		case z.under(s, i, Exp(-x)):
			return beyond + x
		}
		u = s.Uint64()
		i = uint8(u)
		u >>= 11
	}
}

// under reports whether a random height in layer i lies under a density.
func (z *ziggurat) under(s *Stream, i uint8, density float64) bool {
	low, high := z.height[i], z.height[int(i)+1]
	return low+float64((high-low)*s.Float64()) < density
}

// Normal returns a normal variate with mean 0 and standard deviation 1.
func (s *Stream) Normal() float64 {
	for {
		u := s.Uint64()
		i := uint8(u)
		negative := u&0x100 != 0
		u >>= 11
		x := float64(float64(u) * normals.scale[i])
		if u >= normals.sure[i] {
			if i == 0 {
				x = s.normalTail()
			} else if !normals.under(s, i, Exp(-0.5*float64(x*x))) {
				continue
			}
		}
		if negative {
			x = -x
		}
		return x
	}
}

// normalTail returns a variate of the normal beyond the lowest layer's rectangle
// (Marsaglia, 1964).
func (s *Stream) normalTail() float64 {
	for {
		x := s.Exp() / normalTail
		if y := s.Exp(); 2*y > float64(x*x) {
			return normalTail + x
		}
	}
}
