	.text
	.globl	k
	.type	k,@function
k:
.LBB0_227:                              # %"6_for_query_sums_intm.s1.outer"
                                        #   Parent Loop BB0_206 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	vmovaps	(%r11,%rax), %zmm1
	vfmadd231ps	(%r10,%rax), %zmm1, %zmm0 # zmm0 = (zmm1 * mem) + zmm0
	addq	$64, %rax
	cmpq	%rax, %rcx
	jne	.LBB0_227
.LBB0_239:                              # %"9_for_state_reads.s1.key$x.ko"
                                        #   Parent Loop BB0_206 Depth=1
                                        #     Parent Loop BB0_237 Depth=2
                                        # =>    This Inner Loop Header: Depth=3
	cmpq	%rbx, %rcx
	movl	$0, %edx
	cmovll	%r9d, %edx
	kmovd	%edx, %k4
	kandw	%k4, %k3, %k5
	vmovups	-192(%r14,%rax,4), %zmm12 {%k5} {z}
	vbroadcastss	(%r15,%rcx,4), %zmm13
	vfmadd231ps	%zmm12, %zmm13, %zmm7   # zmm7 = (zmm13 * zmm12) + zmm7
	kandw	%k4, %k2, %k5
	vmovups	-128(%r14,%rax,4), %zmm14 {%k5} {z}
	kandw	%k4, %k1, %k5
	vmovups	-64(%r14,%rax,4), %zmm15 {%k5} {z}
	vfmadd231ps	%zmm14, %zmm13, %zmm6   # zmm6 = (zmm13 * zmm14) + zmm6
	vfmadd231ps	%zmm13, %zmm15, %zmm5   # zmm5 = (zmm15 * zmm13) + zmm5
	kandw	%k4, %k0, %k4
	vmovups	(%r14,%rax,4), %zmm16 {%k4} {z}
	vfmadd231ps	%zmm13, %zmm16, %zmm4   # zmm4 = (zmm16 * zmm13) + zmm4
	vbroadcastss	-4(%r10,%rcx,4), %zmm13
	vfmadd231ps	%zmm12, %zmm13, %zmm11  # zmm11 = (zmm13 * zmm12) + zmm11
	vfmadd231ps	%zmm14, %zmm13, %zmm10  # zmm10 = (zmm13 * zmm14) + zmm10
	vfmadd231ps	%zmm15, %zmm13, %zmm9   # zmm9 = (zmm13 * zmm15) + zmm9
	vfmadd231ps	%zmm16, %zmm13, %zmm8   # zmm8 = (zmm13 * zmm16) + zmm8
	cmpq	%rsi, %rcx
	movl	$0, %edx
	cmovll	%r9d, %edx
	kmovd	%edx, %k4
	kandw	%k4, %k3, %k5
	vmovups	-192(%r12,%rax,4), %zmm12 {%k5} {z}
	vbroadcastss	4(%r15,%rcx,4), %zmm13
	vfmadd231ps	%zmm12, %zmm13, %zmm7   # zmm7 = (zmm13 * zmm12) + zmm7
	kandw	%k4, %k2, %k5
	vmovups	-128(%r12,%rax,4), %zmm14 {%k5} {z}
	vfmadd231ps	%zmm14, %zmm13, %zmm6   # zmm6 = (zmm13 * zmm14) + zmm6
	kandw	%k4, %k1, %k5
	vmovups	-64(%r12,%rax,4), %zmm15 {%k5} {z}
	vfmadd231ps	%zmm13, %zmm15, %zmm5   # zmm5 = (zmm15 * zmm13) + zmm5
	kandw	%k4, %k0, %k4
	vmovups	(%r12,%rax,4), %zmm16 {%k4} {z}
	vfmadd231ps	%zmm13, %zmm16, %zmm4   # zmm4 = (zmm16 * zmm13) + zmm4
	vbroadcastss	(%r10,%rcx,4), %zmm13
	vfmadd231ps	%zmm12, %zmm13, %zmm11  # zmm11 = (zmm13 * zmm12) + zmm11
	vfmadd231ps	%zmm14, %zmm13, %zmm10  # zmm10 = (zmm13 * zmm14) + zmm10
	vfmadd231ps	%zmm15, %zmm13, %zmm9   # zmm9 = (zmm13 * zmm15) + zmm9
	vfmadd231ps	%zmm16, %zmm13, %zmm8   # zmm8 = (zmm13 * zmm16) + zmm8
	addq	$2, %rcx
	addq	%r8, %rax
	cmpq	%rcx, %r13
	jne	.LBB0_239
# %bb.240:
	retq
.Lfunc_end0:
	.size	k, .Lfunc_end0-k
