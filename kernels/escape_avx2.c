/* escape_avx2: four doubles at a time. Compiled with -mavx2 -mfma; entered by cpu.c only where the
 * CPU has both. The operations that kernels/escape_x86.h, the template, is made of. */
#include <immintrin.h>
#include <stdint.h>

#define V_LANES 4
/* A step takes 3 FMA in each vector, 2 a cycle, but its result is ready only after 7.5 cycles: six
 * vectors in flight fill that, with their z in 12 of the 16 registers and c in memory. */
#define V_UNROLL 6

typedef __m256d vd;
typedef __m256i vi;
typedef __m256d vm; /* all ones or all zeros in each lane */

#define V_FN static inline __attribute__((always_inline))

V_FN vd vd_set(double v) { return _mm256_set1_pd(v); }
V_FN vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
V_FN void vd_store(double *p, vd v) { _mm256_storeu_pd(p, v); }
V_FN vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
V_FN vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
V_FN vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
V_FN vd vd_div(vd a, vd b) { return _mm256_div_pd(a, b); }
V_FN vd vd_floor(vd a) { return _mm256_floor_pd(a); }
V_FN vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
V_FN vd vd_fms(vd a, vd b, vd c) { return _mm256_fmsub_pd(a, b, c); } /* fma(a, b, -c) */

/* a < b, false with a NaN. */
V_FN vm vd_lt(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
/* Equal bits. */
V_FN vm vd_same(vd a, vd b)
{
	return _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_castpd_si256(a), _mm256_castpd_si256(b)));
}
V_FN vm vm_and(vm a, vm b) { return _mm256_and_pd(a, b); }
V_FN vm vm_andnot(vm a, vm b) { return _mm256_andnot_pd(a, b); } /* not a, and b */
V_FN vm vm_or(vm a, vm b) { return _mm256_or_pd(a, b); }
V_FN vm vm_none(void) { return _mm256_setzero_pd(); }
V_FN vm vm_all(void) { return _mm256_castsi256_pd(_mm256_set1_epi64x(-1)); }
V_FN unsigned vm_bits(vm m) { return (unsigned)_mm256_movemask_pd(m); }
V_FN vd vd_pick(vm m, vd yes, vd no) { return _mm256_blendv_pd(no, yes, m); }

V_FN vi vi_set(int64_t v) { return _mm256_set1_epi64x(v); }
V_FN vi v_lane_numbers(void) { return _mm256_setr_epi64x(0, 1, 2, 3); }
V_FN vi vi_load(const int64_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
V_FN void vi_store(int64_t *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }
V_FN vi vi_add(vi a, vi b) { return _mm256_add_epi64(a, b); }
V_FN vi vi_count(vi n, vm m) { return _mm256_sub_epi64(n, _mm256_castpd_si256(m)); } /* n + 1 where m */
V_FN vi vi_pick(vm m, vi yes, vi no)
{
	return _mm256_castpd_si256(_mm256_blendv_pd(_mm256_castsi256_pd(no), _mm256_castsi256_pd(yes), m));
}
V_FN vi vi_from_bits(vd v) { return _mm256_castpd_si256(v); }
V_FN vd vd_from_bits(vi v) { return _mm256_castsi256_pd(v); }
V_FN vi vi_shr52(vi a) { return _mm256_srli_epi64(a, 52); }
V_FN vi vi_shl52(vi a) { return _mm256_slli_epi64(a, 52); }
V_FN vi vi_sub(vi a, vi b) { return _mm256_sub_epi64(a, b); }

/* |v| < 2^51: exact, as the sum with 1.5 * 2^52 holds v in its low bits. */
V_FN vd vd_from_int(vi v)
{
	const double magic = 6755399441055744.0;
	__m256i sum = _mm256_add_epi64(v, _mm256_castpd_si256(_mm256_set1_pd(magic)));

	return _mm256_sub_pd(_mm256_castsi256_pd(sum), _mm256_set1_pd(magic));
}

V_FN void vi_store32(uint32_t *p, vi v)
{
	__m256i low = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));

	_mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(low));
}

V_FN void vd_store_float(float *p, vd v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }

/* table[v & (size - 1)], size a power of two; v in 0 .. 2^31-1. */
V_FN void v_lookup(uint32_t *out, const uint32_t *table, vd v, uint32_t size)
{
	__m128i at = _mm_and_si128(_mm256_cvttpd_epi32(v), _mm_set1_epi32((int)(size - 1)));

	_mm_storeu_si128((__m128i *)out, _mm_i32gather_epi32((const int *)table, at, 4));
}

/* Moves the lanes of `bits` to the front and stores the whole vector: p needs room for all of it. */
static const int32_t front[16][8] __attribute__((aligned(32))) = {
#define LANE(n) 2 * (n), 2 * (n) + 1
	{ 0 },
	{ LANE(0) }, { LANE(1) }, { LANE(0), LANE(1) },
	{ LANE(2) }, { LANE(0), LANE(2) }, { LANE(1), LANE(2) }, { LANE(0), LANE(1), LANE(2) },
	{ LANE(3) }, { LANE(0), LANE(3) }, { LANE(1), LANE(3) }, { LANE(0), LANE(1), LANE(3) },
	{ LANE(2), LANE(3) }, { LANE(0), LANE(2), LANE(3) }, { LANE(1), LANE(2), LANE(3) },
	{ LANE(0), LANE(1), LANE(2), LANE(3) },
#undef LANE
};

V_FN vi vi_compress(vi v, unsigned bits)
{
	return _mm256_permutevar8x32_epi32(v, _mm256_load_si256((const __m256i *)front[bits]));
}

V_FN vd vd_compress(vd v, unsigned bits)
{
	return _mm256_castsi256_pd(vi_compress(_mm256_castpd_si256(v), bits));
}

#define V_ISA mq_isa_avx2
#define V_NAME "avx2"
#include "kernels/escape_x86.h"
